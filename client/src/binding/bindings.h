#pragma once

#include <pybind11/pybind11.h>

// Each function adds its classes to the module `stoker._core`.
namespace stoker::client {

void add_catalog(pybind11::module_& module);
void add_node_reader(pybind11::module_& module);
void add_sidecar_client(pybind11::module_& module);

}  // namespace stoker::client
