#include <chrono>

#include <pybind11/stl.h>
#include <unistd.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/binding/sample_ids.h"
#include "client/src/core/sidecar_client.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

const SystemClock& system_clock() {
    static const SystemClock kClock;
    return kClock;
}

TimePoint deadline_after(double seconds) {
    return system_clock().now() +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Lets Python's signal handlers run while a wait has let go of the GIL; true when one of them
// raised.
bool signal_raised() {
    py::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
}

// Runs a blocking call without the GIL. A Python exception that a signal handler raised meanwhile
// wins.
template <class Call>
auto waiting(Call call) {
    auto result = [&call] {
        py::gil_scoped_release release;
        return call();
    }();
    if (PyErr_Occurred() != nullptr) {
        throw py::error_already_set();
    }
    return value_or_raise(std::move(result));
}

class PySidecarClient {
public:
    PySidecarClient(
        const std::string& socket_path,
        const std::string& dataset,
        std::uint32_t rank,
        std::uint32_t world_size,
        std::uint64_t stream,
        const std::string& client,
        double timeout) {
        local::Hello hello;
        hello.pid = static_cast<std::uint32_t>(::getpid());
        hello.rank = rank;
        hello.world_size = world_size;
        hello.stream = stream;
        hello.dataset = dataset;
        hello.client = client;
        const TimePoint deadline = deadline_after(timeout);
        client_.emplace(waiting([&] {
            return SidecarClient::connect(
                socket_path, hello, system_clock(), deadline, signal_raised);
        }));
    }

    // ("welcome", revision, sample count, directory) or ("listing", objects so far).
    py::tuple await_welcome(double timeout) {
        const TimePoint deadline = deadline_after(timeout);
        const auto answer = waiting([&] { return client_->await_welcome(deadline); });
        if (const auto* listing = std::get_if<local::Listing>(&answer)) {
            return py::make_tuple("listing", listing->objects_listed);
        }
        const auto& welcome = std::get<local::Welcome>(answer);
        return py::make_tuple("welcome", welcome.revision, welcome.sample_count, welcome.directory);
    }

    // (bytes: one FetchStatus for each id, message).
    py::tuple fetch(py::handle ids, double timeout) {
        const auto wanted = sample_ids(ids, UINT64_MAX);
        const TimePoint deadline = deadline_after(timeout);
        const auto fetched = waiting([&] { return client_->fetch(wanted, deadline); });
        const auto* raw = reinterpret_cast<const char*>(fetched.statuses.data());
        return py::make_tuple(py::bytes{raw, fetched.statuses.size()}, fetched.message);
    }

    void send_plan(std::uint64_t epoch, py::handle ids, std::uint64_t start, double timeout) {
        const auto plan = sample_ids(ids, UINT64_MAX);
        const TimePoint deadline = deadline_after(timeout);
        waiting([&] { return client_->send_plan(epoch, plan, start, deadline); });
    }

    bool send_consumed(std::uint64_t epoch, py::handle ids) {
        return value_or_raise(client_->send_consumed(epoch, sample_ids(ids, UINT64_MAX)));
    }

    bool send_report(const std::vector<std::uint64_t>& fields) {
        if (fields.size() != 8) {
            throw py::value_error("a report has 8 numbers");
        }
        return value_or_raise(client_->send_report(
            {fields[0],
             fields[1],
             fields[2],
             fields[3],
             fields[4],
             fields[5],
             fields[6],
             fields[7]}));
    }

    [[nodiscard]] bool is_usable() const { return client_->is_usable(); }

    [[nodiscard]] bool has_answer() const { return client_->has_answer(); }

private:
    std::optional<SidecarClient> client_;
};

}  // namespace

void add_sidecar_client(py::module_& module) {
    py::class_<PySidecarClient>(
        module, "SidecarClient", "One connection to a sidecar; times are seconds.")
        .def(
            py::init<
                const std::string&,
                const std::string&,
                std::uint32_t,
                std::uint32_t,
                std::uint64_t,
                const std::string&,
                double>(),
            py::kw_only(),
            py::arg("socket_path"),
            py::arg("dataset"),
            py::arg("rank"),
            py::arg("world_size"),
            py::arg("stream"),
            py::arg("client"),
            py::arg("timeout"))
        .def("await_welcome", &PySidecarClient::await_welcome, py::arg("timeout"))
        .def("fetch", &PySidecarClient::fetch, py::arg("ids"), py::arg("timeout"))
        .def(
            "send_plan",
            &PySidecarClient::send_plan,
            py::arg("epoch"),
            py::arg("ids"),
            py::arg("start"),
            py::arg("timeout"))
        .def("send_consumed", &PySidecarClient::send_consumed, py::arg("epoch"), py::arg("ids"))
        .def("send_report", &PySidecarClient::send_report, py::arg("fields"))
        .def("has_answer", &PySidecarClient::has_answer)
        .def_property_readonly("is_usable", &PySidecarClient::is_usable);
}

}  // namespace stoker::client
