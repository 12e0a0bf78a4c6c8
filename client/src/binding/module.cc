#include <array>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/binding/sample_object.h"
#include "common/base/lower_case.h"
#include "common/domain/contract_table.h"
#include "common/domain/epoch_length.h"
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
                std::string{to_string(exception.error.code)}, to_words(exception.error.message));
            PyErr_SetObject(type, arguments.ptr());
        }
    });
}

// CONTRACTS: the TrainingJob's contract -> contracts that a program may request under it.
// PARAMETERS: contract -> parameter name -> (narrower, words): the direction in which a program may
// change the value, and the names of the values if these are words. Omits experimental parameters.
void add_contracts(py::module_& module) {
    constexpr std::array kNarrower{"less", "more", "same"};
    py::dict contracts;
    py::dict parameters;
    for (const std::string_view contract : domain::kContracts) {
        py::dict own;
        for (const domain::ContractParameter& row : domain::kContractParameters) {
            py::list words;
            for (auto place = 0U; row.is_word() && place <= row.most; ++place) {
                words.append(lower_case(row.words.at(place)));
            }
            if (row.contract == contract && row.set_by != domain::SetBy::kExperiment) {
                const char* narrower = kNarrower.at(static_cast<std::size_t>(row.narrower));
                own[py::str{row.name}] = py::make_tuple(narrower, words);
            }
        }
        contracts[py::str{contract}] = py::cast(domain::allowed_by(contract));
        parameters[py::str{contract}] = own;
    }
    module.attr("CONTRACTS") = contracts;
    module.attr("PARAMETERS") = parameters;
}

void add_epoch_length(py::module_& module) {
    module.def(
        "check_values",
        [](std::string_view contract, const domain::ContractValues& values) {
            value_or_raise(domain::check_values(contract, values));
        },
        py::arg("contract"),
        py::arg("values"),
        "See common/domain/epoch_length.h.");
    module.def(
        "draws_of_epoch",
        &domain::draws_of_epoch,
        py::arg("contract"),
        py::arg("values"),
        py::arg("ranks"),
        py::arg("epoch"),
        py::arg("share"),
        "See common/domain/epoch_length.h.");
}

}  // namespace stoker::client

PYBIND11_MODULE(_core, module) {
    module.doc() = "C++ core of the Stoker client; use the `stoker` package.";
    module.attr("__version__") = STOKER_VERSION;
    module.attr("PROTOCOL_VERSION") = stoker::local::kProtocolVersion;
    stoker::client::add_core_error(module);
    stoker::client::add_contracts(module);
    stoker::client::add_epoch_length(module);
    stoker::client::add_sample_type(module);
    stoker::client::add_catalog(module);
    stoker::client::add_memory(module);
    stoker::client::add_misses(module);
    stoker::client::add_node_reader(module);
    stoker::client::add_sidecar_client(module);
}
