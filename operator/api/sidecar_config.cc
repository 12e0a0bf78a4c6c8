#include "operator/api/sidecar_config.h"

#include <fmt/format.h>

#include "common/base/lower_case.h"
#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

Json write_sampling(const ContractParameters& parameters) {
    std::vector<JsonMember> members;
    for (const auto& [name, value] : parameters.numbers) {
        members.push_back({name, value});
    }
    for (const auto& [name, value] : parameters.words) {
        members.push_back({name, lower_case(value)});
    }
    return json_object(members);
}

// Text of the format. Empty: the default of sidecar and trainer.
std::string format_text(DatasetFormat format) {
    return format == DatasetFormat::kObjects ? "" : lower_case(choice_text(format));
}

Json write_records(const std::optional<DatasetRecords>& records) {
    if (!records) {
        return json_object({});
    }
    return json_object({{"bytes", records->bytes}, {"suffix", records->suffix}});
}

// The origin of a dataset's samples, written the same for sidecar and trainer.
std::vector<JsonMember> write_origin(const OriginConfig& origin) {
    return {
        {"uri", origin.uri},
        {"index", origin.index},
        {"endpoint", origin.endpoint},
        {"region", origin.region},
        {"pathStyle", origin.path_style},
        {"caFile", origin.ca_file},
        {"format", format_text(origin.format)},
        {"records", write_records(origin.records)}};
}

// The sidecar's name of the policy; empty: its default, which the contract chooses.
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

std::string listing_age_text(const DatasetConfig& dataset) {
    const auto& seconds = dataset.listing_age_seconds_max;
    return seconds ? fmt::format("{}s", *seconds) : "";
}

Json write_dataset(const DatasetConfig& dataset, const SidecarConfig& config) {
    std::vector<JsonMember> origin = write_origin(dataset.origin);
    origin.push_back({"credentialsDirectory", dataset.origin.credentials_directory});
    if (dataset.origin.block_size) {
        origin.push_back({"blockSize", dataset.origin.block_size->count()});
    }
    return json_object(
        {{"name", dataset.name},
         {"uid", dataset.uid},
         {"directory", dataset.directory},
         {"filesSocket", dataset.files_socket},
         {"origin", json_object(origin)},
         {"window", config.window_bytes.count()},
         {"reservedFree", fmt::format("0.{:02}", config.reserved_free_percent)},
         {"eviction", eviction_text(dataset.eviction)},
         {"guest", if_true(dataset.guest)},
         {"pinned", if_true(dataset.pinned)},
         {"peers", if_true(dataset.peers)},
         {"listingAgeMax", listing_age_text(dataset)},
         {"contract", lower_case(choice_text(dataset.contract))},
         {"sampling", write_sampling(dataset.parameters)}});
}

}  // namespace

Json to_json(const SidecarConfig& config) {
    const std::int64_t idle = config.end_when_idle_seconds;
    const auto write = [&](const DatasetConfig& dataset) { return write_dataset(dataset, config); };
    return json_object(
        {{"socket", config.socket},
         {"socketMode", config.socket_mode},
         {"endWhenIdle", idle > 0 ? fmt::format("{}s", idle) : ""},
         {"http", json_object({{"listen", config.http_listen}, {"readers", config.http_readers}})},
         {"control",
          json_object(
              {{"endpoint", config.control_endpoint}, {"tokenFile", config.control_token_file}})},
         {"peers", json_object({{"listen", config.peers_listen}})},
         {"s3Listen", config.s3_listen},
         {"job",
          json_object(
              {{"trainingJob", config.training_job}, {"trainingJobUid", config.training_job_uid}})},
         {"datasets", json_list(config.datasets, write)}});
}

Json to_json(const std::vector<DatasetConfig>& datasets) {
    std::vector<JsonMember> places;
    for (const DatasetConfig& dataset : datasets) {
        std::vector<JsonMember> place = write_origin(dataset.origin);
        // The trainer reads only data/ of the node directory.
        place.push_back(
            {"directory", dataset.directory.empty() ? "" : dataset.directory + "/data"});
        place.push_back({"contract", lower_case(choice_text(dataset.contract))});
        place.push_back({"sampling", write_sampling(dataset.parameters)});
        place.push_back({"guest", if_true(dataset.guest)});
        place.push_back({"authenticate", if_true(dataset.origin.authenticate)});
        places.push_back({dataset.name, json_object(place)});
    }
    return json_object(places);
}

}  // namespace stoker::control
