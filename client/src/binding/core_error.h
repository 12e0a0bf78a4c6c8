#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "common/base/clock.h"
#include "common/base/result.h"

// Helpers of all bindings: raise an Error as the Python exception `stoker._core.CoreError(code,
// message)`, convert messages to str and seconds to deadlines, and run blocking calls without the
// GIL. `code` is to_string(ErrorCode). Only this folder throws exceptions; the core returns values.
namespace stoker::client {

struct CoreException {
    Error error;
};

void add_core_error(pybind11::module_& module);

// A message as a str; it may quote keys or origin replies with arbitrary bytes.
inline pybind11::str to_words(const std::string& words) {
    return pybind11::reinterpret_steal<pybind11::str>(
        PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "replace"));
}

template <class T>
T value_or_raise(Result<T> result) {
    if (!result) {
        throw CoreException{std::move(result).error()};
    }
    if constexpr (!std::is_void_v<T>) {
        return *std::move(result);
    }
}

inline const SystemClock& system_clock() {
    static const SystemClock kClock;
    return kClock;
}

inline TimePoint deadline_after(double seconds) {
    return system_clock().now() +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Runs a blocking call, deadline -> Result, without the GIL; `timeout` is in seconds. An exception
// of a Python signal handler takes precedence over the result.
template <class Call>
auto waiting(double timeout, Call call) {
    auto result = [&] {
        const TimePoint deadline = deadline_after(timeout);
        pybind11::gil_scoped_release release;
        return call(deadline);
    }();
    if (PyErr_Occurred() != nullptr) {
        throw pybind11::error_already_set();
    }
    return value_or_raise(std::move(result));
}

}  // namespace stoker::client
