#pragma once

#include <memory>
#include <utility>

#include "common/base/check.h"

namespace stoker {

// A value whose copies share one object in memory. The object does not change while several values
// share it, so these may be used on different threads. Never empty. A moved-from value may only be
// assigned to or destroyed.
template <class T>
class SharedValue {
public:
    SharedValue()
        : SharedValue(T{}) {}

    // NOLINTNEXTLINE(google-explicit-constructor): a T is a SharedValue that shares nothing yet
    SharedValue(T value)
        : value_(std::make_shared<const T>(std::move(value))) {}

    // Shares the object that `value` owns; `value` must not be null.
    explicit SharedValue(std::shared_ptr<const T> value)
        : value_(std::move(value)) {
        STOKER_CHECK(value_ != nullptr, "a shared value is not empty");
    }

    const T& operator*() const { return *value_; }

    const T* operator->() const { return value_.get(); }

    // NOLINTNEXTLINE(google-explicit-constructor): it is read like a T
    operator const T&() const { return *value_; }

    // An object for changes that no other value shares; copies it if necessary. Change it before
    // this value is copied, and before the next call of edit().
    T& edit() {
        auto own = std::make_shared<T>(*value_);
        T& result = *own;
        value_ = std::move(own);
        return result;
    }

private:
    std::shared_ptr<const T> value_;
};

}  // namespace stoker
