#pragma once

#include <cstdint>
#include <vector>

#include <pybind11/pybind11.h>

// Functions shared by the files of this folder.
namespace stoker::client {

// Each function adds its classes to the module `stoker._core`.
void add_catalog(pybind11::module_& module);
void add_memory(pybind11::module_& module);
void add_misses(pybind11::module_& module);
void add_node_reader(pybind11::module_& module);
void add_sidecar_client(pybind11::module_& module);

// Converts any Python sequence of integers to ids; copies one-dimensional 64-bit integer buffers
// (numpy) in one step. Throws a Python TypeError for non-integers and IndexError for ids outside
// 0..count-1.
std::vector<std::uint64_t> sample_ids(pybind11::handle ids, std::uint64_t count);

}  // namespace stoker::client
