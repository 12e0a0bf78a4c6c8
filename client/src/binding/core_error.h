#pragma once

#include <utility>

#include <pybind11/pybind11.h>

#include "common/base/result.h"

// How an Error becomes a Python exception: `stoker._core.CoreError(code, message)`, code as in
// to_string(ErrorCode). Exceptions exist in this folder only; the core returns values.
namespace stoker::client {

struct CoreException {
    Error error;
};

void add_core_error(pybind11::module_& module);

template <class T>
T value_or_raise(Result<T> result) {
    if (!result) {
        throw CoreException{std::move(result).error()};
    }
    if constexpr (!std::is_void_v<T>) {
        return *std::move(result);
    }
}

}  // namespace stoker::client
