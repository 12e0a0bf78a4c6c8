#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <pybind11/pybind11.h>

#include "common/domain/segment_format.h"

// The Python type `stoker.Sample`, written against CPython's own API: one is made for every sample
// that is read, so it must cost tens of nanoseconds. It is a read-only buffer itself and holds what
// keeps its bytes alive.
namespace stoker::client {

struct SampleFields {
    std::span<const std::byte> bytes;
    std::uint64_t id = 0;
    std::int32_t label = -1;
    // The bytes stand behind their record header of this segment; `pin` keeps both ...
    std::optional<domain::SegmentSeq> seq{};
    std::shared_ptr<const void> pin{};
    PyObject* owner =
        nullptr;  // ... or in this `bytes` object (borrowed; the sample takes a reference)
    PyObject* catalog =
        nullptr;  // gives key and ETag by id: a Catalog, or a tuple (key, etag); borrowed
};

// Makes the type and puts it into the module as `Sample`.
void add_sample_type(pybind11::module_& module);

// A new reference, or nullptr with a Python error set.
PyObject* new_sample(SampleFields fields);

}  // namespace stoker::client
