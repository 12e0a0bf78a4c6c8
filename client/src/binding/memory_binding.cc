#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/core.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/sample_object.h"
#include "client/src/core/gather.h"
#include "client/src/core/mapped_file.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

// A writable contiguous buffer of a Python object, held until destruction. The constructor throws
// the object's BufferError or ValueError.
class WritableBuffer {
public:
    explicit WritableBuffer(py::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0) {
            throw py::error_already_set();
        }
    }

    WritableBuffer(const WritableBuffer&) = delete;
    WritableBuffer& operator=(const WritableBuffer&) = delete;

    ~WritableBuffer() { PyBuffer_Release(&view_); }

    [[nodiscard]] std::span<std::byte> bytes() const {
        return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

private:
    Py_buffer view_{};
};

// Copies the samples one after another into `out`. Returns (offsets, lost): offsets where each
// sample begins, plus the end of the last one; positions whose bytes could not be read. Releases
// the GIL during the copy.
py::tuple gather(const py::sequence& samples, py::handle out) {
    const py::tuple held(samples);
    const WritableBuffer buffer(out);
    py::array_t<std::int64_t> offsets(static_cast<py::ssize_t>(held.size() + 1));
    auto* const begins = offsets.mutable_data();
    std::vector<CopyPiece> pieces;
    std::size_t end = 0;
    for (const py::handle sample : held) {
        const auto from = sample_bytes(sample.ptr());
        begins[pieces.size()] = static_cast<std::int64_t>(end);
        if (from.size() > buffer.bytes().size() - end) {
            throw py::value_error(fmt::format("`out` has only {} bytes", buffer.bytes().size()));
        }
        pieces.push_back({from, buffer.bytes().subspan(end, from.size())});
        end += from.size();
    }
    begins[pieces.size()] = static_cast<std::int64_t>(end);
    install_bus_guard();
    std::vector<std::size_t> lost;
    {
        const py::gil_scoped_release release;
        lost = copy_pieces(pieces);
    }
    return py::make_tuple(std::move(offsets), lost);
}

// Adds each number to the 64-bit counter at the same place of `out`, atomically: processes that
// share the memory may add at the same time. Throws ValueError if `out` has fewer counters.
void add_shared(py::handle out, const std::vector<std::int64_t>& numbers) {
    const WritableBuffer buffer(out);
    if (buffer.bytes().size() / sizeof(std::int64_t) < numbers.size()) {
        throw py::value_error("`out` has fewer counters than there are numbers");
    }
    auto* counter = reinterpret_cast<std::int64_t*>(buffer.bytes().data());
    for (const std::int64_t number : numbers) {
        std::atomic_ref{*counter++}.fetch_add(number, std::memory_order_relaxed);
    }
}

}  // namespace

void add_memory(py::module_& module) {
    module.def("gather", &gather, py::arg("samples"), py::arg("out"));
    module.def("add_shared", &add_shared, py::arg("out"), py::arg("numbers"));
}

}  // namespace stoker::client
