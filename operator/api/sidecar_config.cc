#include "operator/api/sidecar_config.h"

#include <fmt/format.h>

#include "common/base/lower_case.h"
#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

JsonWriter write_origin(const OriginConfig& origin) {
    JsonWriter writer;
    writer.text("uri", origin.uri).text("endpoint", origin.endpoint).text("region", origin.region);
    if (origin.path_style) {
        writer.flag("pathStyle", *origin.path_style);
    }
    writer.text("caFile", origin.ca_file);
    return writer;
}

JsonWriter write_sampling(const ContractParameters& parameters) {
    JsonWriter writer;
    for (const auto& [name, value] : parameters.numbers) {
        writer.decimal(name, value);
    }
    for (const auto& [name, value] : parameters.words) {
        writer.text(name, lower_case(value));
    }
    return writer;
}

// The sidecar's word for it; empty: its default, which is what the contract's own policy keeps.
std::string eviction_text(EvictionPolicy policy) {
    switch (policy) {
        case EvictionPolicy::kUniform:
        case EvictionPolicy::kNone:
            return "never";
        case EvictionPolicy::kLru:
        case EvictionPolicy::kLfu:
            return lower_case(choice_text(policy));
        case EvictionPolicy::kAuto:
            break;
    }
    return "";
}

JsonWriter write_dataset(const DatasetConfig& dataset, const SidecarConfig& config) {
    JsonWriter origin = write_origin(dataset.origin);
    origin.text("credentialsDirectory", dataset.origin.credentials_directory);
    JsonWriter writer;
    writer.text("name", dataset.name)
        .text("uid", dataset.uid)
        .text("directory", dataset.directory)
        .object("origin", origin)
        .number("window", static_cast<std::int64_t>(config.window_bytes.count()))
        .text("reservedFree", fmt::format("0.{:02}", config.reserved_free_percent))
        .text("eviction", eviction_text(dataset.eviction));
    if (dataset.guest) {
        writer.flag("guest", true);
    }
    if (dataset.pinned) {
        writer.flag("pinned", true);
    }
    writer.text("contract", std::string{contract_member(dataset.contract)})
        .object("sampling", write_sampling(dataset.parameters));
    return writer;
}

}  // namespace

std::string to_json(const SidecarConfig& config) {
    JsonWriter job;
    job.text("trainingJob", config.training_job).text("trainingJobUid", config.training_job_uid);
    JsonWriter control;
    control.text("endpoint", config.control_endpoint).text("tokenFile", config.control_token_file);
    JsonWriter http;
    http.text("listen", config.http_listen).texts("readers", config.http_readers);
    JsonWriter writer;
    writer.text("socket", config.socket)
        .text("socketMode", config.socket_mode)
        .text(
            "endWhenIdle",
            config.end_when_idle_seconds > 0 ? fmt::format("{}s", config.end_when_idle_seconds)
                                             : "")
        .object("http", http)
        .object("control", control)
        .object("job", job)
        .list("datasets", config.datasets, [&](const DatasetConfig& dataset) {
            return write_dataset(dataset, config);
        });
    return writer.serialize();
}

std::string to_json(const std::vector<DatasetConfig>& datasets) {
    JsonWriter writer;
    for (const DatasetConfig& dataset : datasets) {
        JsonWriter place = write_origin(dataset.origin);
        // The trainer reads data/ of the node directory, and nothing else of it.
        place.text("directory", dataset.directory.empty() ? "" : dataset.directory + "/data")
            .text("contract", std::string{contract_member(dataset.contract)})
            .object("sampling", write_sampling(dataset.parameters));
        if (dataset.guest) {
            place.flag("guest", true);
        }
        writer.object(dataset.name, place);
    }
    return writer.serialize();
}

}  // namespace stoker::control
