#include "operator/api/sidecar_config.h"

#include <fmt/format.h>

#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

JsonWriter write_origin(const OriginConfig& origin) {
    JsonWriter writer;
    writer.text("uri", origin.uri)
        .text("endpoint", origin.endpoint)
        .text("region", origin.region)
        .flag("pathStyle", origin.path_style);
    return writer;
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
        .text("reservedFree", fmt::format("0.{:02}", config.reserved_free_percent));
    return writer;
}

}  // namespace

std::string to_json(const SidecarConfig& config) {
    JsonWriter job;
    job.text("trainingJob", config.training_job).text("trainingJobUid", config.training_job_uid);
    JsonWriter control;
    control.text("endpoint", config.control_endpoint).text("tokenFile", config.control_token_file);
    JsonWriter http;
    http.text("listen", config.http_listen);
    JsonWriter writer;
    writer.text("socket", config.socket)
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
        place.text("directory", dataset.directory);
        writer.object(dataset.name, place);
    }
    return writer.serialize();
}

}  // namespace stoker::control
