#include <map>
#include <optional>
#include <span>
#include <string_view>

#include <pybind11/stl.h>
#include <unistd.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/core/sidecar_client.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

// Runs Python's signal handlers during a wait that has released the GIL; true if one of them
// raised.
bool signal_raised() {
    py::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
}

template <class Value>
py::bytes raw_bytes(const std::vector<Value>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

// The buffer's memory as floats. Throws unless it is `count` contiguous float32.
std::span<const float> floats_of(const py::buffer& buffer, std::size_t count) {
    const py::buffer_info info = buffer.request();
    if (info.format != py::format_descriptor<float>::format() || info.ndim != 1 ||
        static_cast<std::size_t>(info.size) != count ||
        info.strides.at(0) != static_cast<py::ssize_t>(sizeof(float))) {
        throw py::value_error("losses and p_others must be float32 arrays as long as the samples");
    }
    return {static_cast<const float*>(info.ptr), count};
}

SidecarClient connect_to(
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
    return waiting(timeout, [&](TimePoint deadline) {
        return SidecarClient::connect(socket_path, hello, system_clock(), deadline, signal_raised);
    });
}

// Returns ("welcome", revision, sample count, directory, features) or ("listing", objects so far).
py::tuple await_welcome(SidecarClient& client, double timeout) {
    const auto answer =
        waiting(timeout, [&](TimePoint deadline) { return client.await_welcome(deadline); });
    if (const auto* listing = std::get_if<local::Listing>(&answer)) {
        return py::make_tuple("listing", listing->objects_listed);
    }
    const auto& welcome = std::get<local::Welcome>(answer);
    return py::make_tuple(
        "welcome", welcome.revision, welcome.sample_count, welcome.directory, welcome.features);
}

void send_plan(
    SidecarClient& client,
    std::uint64_t epoch,
    py::handle ids,
    std::uint64_t start,
    py::handle ahead,
    double timeout) {
    const auto plan = sample_ids(ids, UINT64_MAX);
    const auto next = sample_ids(ahead, UINT64_MAX);
    waiting(timeout, [&](TimePoint deadline) {
        return client.send_plan(epoch, plan, start, next, deadline);
    });
}

// Returns (epoch, number of losses that the job's sampler has learnt from).
py::tuple begin(
    SidecarClient& client,
    std::uint64_t epoch,
    std::uint64_t skip,
    std::uint64_t seed,
    std::uint32_t rank,
    std::uint32_t world_size,
    std::uint32_t batch,
    const std::string& contract,
    const std::string& job,
    const std::map<std::string, double>& parameters,
    const py::bytes& served,
    const py::bytes& snapshot,
    double timeout) {
    local::Begin frame;
    frame.epoch = epoch;
    frame.skip = skip;
    frame.seed = seed;
    frame.rank = rank;
    frame.world_size = world_size;
    frame.batch = batch;
    frame.contract = contract;
    frame.job = job;
    for (const auto& [name, value] : parameters) {
        frame.parameters.push_back({name, value});
    }
    const std::string_view had = served;
    const std::string_view state = snapshot;
    const auto begun = waiting(timeout, [&](TimePoint deadline) {
        return client.begin(
            frame, std::as_bytes(std::span{had}), std::as_bytes(std::span{state}), deadline);
    });
    return py::make_tuple(begun.epoch, begun.losses);
}

// Returns (requested u64, served u64, kinds u8, ended): the first three as bytes.
py::tuple draw(SidecarClient& client, std::uint64_t epoch, std::uint32_t count, double timeout) {
    const auto drawn =
        waiting(timeout, [&](TimePoint deadline) { return client.draw(epoch, count, deadline); });
    return py::make_tuple(
        raw_bytes(drawn.requested), raw_bytes(drawn.served), raw_bytes(drawn.kinds), drawn.ended);
}

// Returns (epoch, requested, distinct, repeated, substituted, skipped, losses used, losses ignored).
py::tuple tally(SidecarClient& client, std::uint64_t epoch, double timeout) {
    const auto tally =
        waiting(timeout, [&](TimePoint deadline) { return client.tally(epoch, deadline); });
    return py::make_tuple(
        tally.epoch,
        tally.requested,
        tally.distinct,
        tally.repeated,
        tally.substituted,
        tally.skipped,
        tally.losses_used,
        tally.losses_ignored);
}

py::bytes snapshot(SidecarClient& client, double timeout) {
    return raw_bytes(
        waiting(timeout, [&](TimePoint deadline) { return client.snapshot(deadline); }).state);
}

// `losses` and `p_others` (see local::Losses): buffers with one float32 per sample. `p_others` may be
// None.
bool send_losses(
    SidecarClient& client,
    std::uint64_t epoch,
    py::handle samples,
    const py::buffer& losses,
    const std::optional<py::buffer>& p_others) {
    const auto ids = sample_ids(samples, UINT64_MAX);
    return value_or_raise(client.send_losses(
        epoch,
        ids,
        floats_of(losses, ids.size()),
        p_others ? floats_of(*p_others, ids.size()) : std::span<const float>{}));
}

// `hashes`: a buffer with one uint64 per sample.
bool send_similarity(SidecarClient& client, py::handle samples, const py::buffer& hashes) {
    const auto ids = sample_ids(samples, UINT64_MAX);
    const py::buffer_info info = hashes.request();
    constexpr auto kBytes = static_cast<py::ssize_t>(sizeof(std::uint64_t));
    if (info.itemsize != kBytes || info.ndim != 1 || info.strides.at(0) != kBytes ||
        static_cast<std::size_t>(info.size) != ids.size()) {
        throw py::value_error("hashes must be a uint64 array as long as the samples");
    }
    return value_or_raise(
        client.send_similarity(ids, {static_cast<const std::uint64_t*>(info.ptr), ids.size()}));
}

bool send_consumed(SidecarClient& client, std::uint64_t epoch, py::handle ids) {
    return value_or_raise(client.send_consumed(epoch, sample_ids(ids, UINT64_MAX)));
}

bool send_report(SidecarClient& client, const std::vector<std::uint64_t>& fields) {
    if (fields.size() != 8) {
        throw py::value_error("a report has 8 numbers");
    }
    return value_or_raise(client.send_report(
        {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7]}));
}

// Returns the id of the measurement that the operator requests, and the number of batches to
// measure with the cache and without it; id 0: no measurement.
py::tuple ask_probe(SidecarClient& client, double timeout) {
    const auto probe =
        waiting(timeout, [&](TimePoint deadline) { return client.ask_probe(deadline); });
    return py::make_tuple(probe.id, probe.batches);
}

bool send_probed(
    SidecarClient& client,
    std::uint64_t id,
    bool bypassing,
    const std::vector<std::uint64_t>& fields) {
    if (fields.size() != 6) {
        throw py::value_error("a measurement has 6 numbers");
    }
    return value_or_raise(client.send_probed(
        {id, bypassing, fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]}));
}

void add_one_way_frames(py::class_<SidecarClient>& type) {
    type.def("send_consumed", &send_consumed, py::arg("epoch"), py::arg("ids"))
        .def("send_report", &send_report, py::arg("fields"))
        .def(
            "send_losses",
            &send_losses,
            py::arg("epoch"),
            py::arg("samples"),
            py::arg("losses"),
            py::arg("p_others") = py::none())
        .def("send_similarity", &send_similarity, py::arg("samples"), py::arg("hashes"))
        .def("send_probed", &send_probed, py::arg("id"), py::arg("bypassing"), py::arg("fields"));
}

void add_contract_calls(py::class_<SidecarClient>& type) {
    type.def(
            "begin",
            &begin,
            py::kw_only(),
            py::arg("epoch"),
            py::arg("skip"),
            py::arg("seed"),
            py::arg("rank"),
            py::arg("world_size"),
            py::arg("batch"),
            py::arg("contract"),
            py::arg("job"),
            py::arg("parameters"),
            py::arg("served"),
            py::arg("snapshot"),
            py::arg("timeout"))
        .def("draw", &draw, py::arg("epoch"), py::arg("count"), py::arg("timeout"))
        .def("tally", &tally, py::arg("epoch"), py::arg("timeout"))
        .def("snapshot", &snapshot, py::arg("timeout"));
}

}  // namespace

void add_sidecar_client(py::module_& module) {
    py::class_<SidecarClient> type(
        module, "SidecarClient", "One connection to a sidecar; times are seconds.");
    add_one_way_frames(type);
    add_contract_calls(type);
    type.def(
            py::init(&connect_to),
            py::kw_only(),
            py::arg("socket_path"),
            py::arg("dataset"),
            py::arg("rank"),
            py::arg("world_size"),
            py::arg("stream"),
            py::arg("client"),
            py::arg("timeout"))
        .def("await_welcome", &await_welcome, py::arg("timeout"))
        .def(
            "send_plan",
            &send_plan,
            py::arg("epoch"),
            py::arg("ids"),
            py::arg("start"),
            py::arg("ahead"),
            py::arg("timeout"))
        .def("ask_probe", &ask_probe, py::arg("timeout"))
        .def("has_answer", &SidecarClient::has_answer)
        .def_property_readonly("is_usable", &SidecarClient::is_usable);
}

}  // namespace stoker::client
