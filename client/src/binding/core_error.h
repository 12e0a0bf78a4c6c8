#pragma once

#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "common/base/result.h"

// Converts an Error to the Python exception `stoker._core.CoreError(code, message)`; code:
// to_string(ErrorCode). Only this folder throws exceptions; the core returns values.
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

}  // namespace stoker::client
