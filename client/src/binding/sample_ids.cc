#include "client/src/binding/sample_ids.h"

#include <cstring>
#include <string_view>

#include <fmt/core.h>

namespace stoker::client {

namespace {

namespace py = pybind11;

// Releases the buffer of PyObject_GetBuffer.
struct HeldBuffer {
    Py_buffer view{};
    bool held = false;

    ~HeldBuffer() {
        if (held) {
            PyBuffer_Release(&view);
        }
    }
};

bool copy_from_buffer(py::handle source, std::vector<std::uint64_t>& out) {
    HeldBuffer buffer;
    if (PyObject_CheckBuffer(source.ptr()) == 0) {
        return false;
    }
    if (PyObject_GetBuffer(source.ptr(), &buffer.view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
        PyErr_Clear();
        return false;
    }
    buffer.held = true;
    const std::string_view format = buffer.view.format == nullptr ? "B" : buffer.view.format;
    const bool integers = format == "l" || format == "q" || format == "L" || format == "Q";
    if (!integers || buffer.view.itemsize != sizeof(std::uint64_t) || buffer.view.ndim != 1) {
        return false;
    }
    out.resize(static_cast<std::size_t>(buffer.view.len) / sizeof(std::uint64_t));
    std::memcpy(out.data(), buffer.view.buf, static_cast<std::size_t>(buffer.view.len));
    return true;
}

// Negative numbers become huge ones and fail the range check.
std::uint64_t to_id(PyObject* item) {
    const Py_ssize_t id = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (id == -1 && PyErr_Occurred() != nullptr) {
        throw py::error_already_set();
    }
    return static_cast<std::uint64_t>(id);
}

}  // namespace

std::vector<std::uint64_t> sample_ids(py::handle ids, std::uint64_t count) {
    std::vector<std::uint64_t> out;
    if (!copy_from_buffer(ids, out)) {
        const py::object items = py::reinterpret_steal<py::object>(
            PySequence_Fast(ids.ptr(), "sample ids must be a sequence of integers"));
        if (!items) {
            throw py::error_already_set();
        }
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
        out.reserve(static_cast<std::size_t>(size));
        for (Py_ssize_t i = 0; i < size; ++i) {
            out.push_back(to_id(PySequence_Fast_GET_ITEM(items.ptr(), i)));
        }
    }
    for (const std::uint64_t id : out) {
        if (id >= count) {
            throw py::index_error(fmt::format(
                "sample id {} is outside 0..{}", static_cast<std::int64_t>(id), count - 1));
        }
    }
    return out;
}

}  // namespace stoker::client
