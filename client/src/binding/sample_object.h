#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <pybind11/pybind11.h>

#include "common/domain/segment_format.h"

// The Python type `stoker.Sample`, written against CPython's own API, because every read makes one,
// in tens of nanoseconds. It is a read-only buffer and holds a reference to its bytes.
namespace stoker::client {

struct SampleFields {
    std::span<const std::byte> bytes;
    std::uint64_t id = 0;
    std::int32_t label = -1;
    // Set: the bytes are in this segment, after their record header, and `pin` keeps it mapped.
    std::optional<domain::SegmentSeq> seq{};
    std::shared_ptr<const void> pin{};
    PyObject* owner =
        nullptr;  // or they are in this `bytes` object (borrowed; the sample takes a reference)
    PyObject* catalog =
        nullptr;  // source of key and ETag: a Catalog, or a tuple (key, etag); borrowed
};

// Adds the type to the module as `Sample`.
void add_sample_type(pybind11::module_& module);

// The bytes of a Sample, which keeps them mapped while it lives. Throws a Python TypeError for another
// object.
std::span<const std::byte> sample_bytes(PyObject* sample);

// Creates a Sample: a new reference, or nullptr with a Python error set.
PyObject* new_sample(SampleFields fields);

}  // namespace stoker::client
