#pragma once

#include <mutex>
#include <utility>

namespace stoker {

// Data that can only be reached with its lock held: `auto view = state.lock(); view->count++;`. The
// view holds the lock until it goes out of scope. Thread-safe by construction; do not keep
// references obtained through a view.
template <class T>
class Guarded {
public:
    template <class... Args>
    explicit Guarded(Args&&... args)
        : value_(std::forward<Args>(args)...) {}

    class Locked {
    public:
        Locked(std::mutex& mutex, T& value)
            : lock_(mutex),
              value_(&value) {}

        T* operator->() const { return value_; }

        T& operator*() const { return *value_; }

        // The mutex's lock, which condition variables need; do not use it otherwise.
        std::unique_lock<std::mutex>& native() { return lock_; }

    private:
        std::unique_lock<std::mutex> lock_;
        T* value_;
    };

    Locked lock() { return Locked{mutex_, value_}; }

private:
    std::mutex mutex_;
    T value_;
};

}  // namespace stoker
