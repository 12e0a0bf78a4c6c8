#include "client/src/binding/misses.h"

#include <pybind11/stl.h>

namespace stoker::client {

void add_misses(pybind11::module_& module) {
    pybind11::class_<Misses>(module, "Misses", "Samples of a batch that are not read yet.")
        .def(
            pybind11::init<pybind11::handle, std::uint64_t>(),
            pybind11::arg("ids"),
            pybind11::arg("count"))
        .def("__len__", &Misses::size)
        .def("split", &Misses::split, pybind11::arg("size"))
        .def_property_readonly("ids", [](const Misses& m) { return m.all(&Misses::Item::id); })
        .def_property_readonly(
            "positions", [](const Misses& m) { return m.all(&Misses::Item::position); })
        .def_property_readonly("refusal", &Misses::refusal);
}

}  // namespace stoker::client
