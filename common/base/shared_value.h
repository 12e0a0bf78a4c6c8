#pragma once

#include <memory>
#include <utility>

#include "common/base/check.h"

namespace stoker {

// A value of which copies share one object in memory. The object does not change while several
// values share it, so they may be on several threads. Never empty. A moved-from value may only be
// assigned to or destroyed.
template <class T>
class SharedValue {
public:
    SharedValue()
        : SharedValue(T{}) {}

    // NOLINTNEXTLINE(google-explicit-constructor): a T is a SharedValue that shares nothing yet
    SharedValue(T value)
        : value_(std::make_shared<const T>(std::move(value))) {}

    // Shares what `value` owns, which must not be null.
    explicit SharedValue(std::shared_ptr<const T> value)
        : value_(std::move(value)) {
        STOKER_CHECK(value_ != nullptr, "a shared value is not empty");
    }

    const T& operator*() const { return *value_; }

    const T* operator->() const { return value_.get(); }

    // NOLINTNEXTLINE(google-explicit-constructor): it is read like a T
    operator const T&() const { return *value_; }

    // A copy of the object that only this value has. Change it before this value is copied, and
    // before the next call.
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
