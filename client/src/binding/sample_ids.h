#pragma once

#include <cstdint>
#include <vector>

#include <pybind11/pybind11.h>

namespace stoker::client {

// The ids in any Python sequence of integers; one-dimensional 64-bit integer buffers (numpy) are
// copied at once. Throws a Python TypeError for what is no integer, and IndexError for ids outside
// 0..count-1.
std::vector<std::uint64_t> sample_ids(pybind11::handle ids, std::uint64_t count);

}  // namespace stoker::client
