#include <pybind11/pybind11.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/binding/sample_object.h"
#include "proto/local/protocol.h"

namespace py = pybind11;

namespace stoker::client {

void add_core_error(py::module_& module) {
    static PyObject* type =
        PyErr_NewException("stoker._core.CoreError", PyExc_RuntimeError, nullptr);
    module.attr("CoreError") = py::handle{type};
    py::register_exception_translator([](std::exception_ptr pending) {
        try {
            if (pending) {
                std::rethrow_exception(pending);
            }
        } catch (const CoreException& exception) {
            const py::tuple arguments = py::make_tuple(
                std::string{to_string(exception.error.code)}, exception.error.message);
            PyErr_SetObject(type, arguments.ptr());
        }
    });
}

}  // namespace stoker::client

PYBIND11_MODULE(_core, module) {
    module.doc() = "C++ core of the Stoker client; use the `stoker` package.";
    module.attr("__version__") = STOKER_VERSION;
    module.attr("PROTOCOL_VERSION") = stoker::local::kProtocolVersion;
    stoker::client::add_core_error(module);
    stoker::client::add_sample_type(module);
    stoker::client::add_catalog(module);
    stoker::client::add_node_reader(module);
    stoker::client::add_sidecar_client(module);
}
