#include "operator/api/dataset.h"

#include "operator/api/json_reader.h"
#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

SourceVolume read_volume(const JsonReader& volume) {
    SourceVolume result;
    const JsonReader claim = volume.object("persistentVolumeClaim");
    if (claim.present()) {
        result.claim_name = claim.text("claimName");
    }
    const JsonReader host = volume.object("hostPath");
    if (host.present()) {
        result.host_path = host.text("path");
    }
    return result;
}

DatasetSource read_source(const JsonReader& source) {
    DatasetSource result;
    result.storage_uri = source.text("storageUri");
    result.endpoint = source.text("endpoint");
    result.region = source.text("region");
    result.path_style = source.maybe_flag("pathStyle");
    const JsonReader secret = source.object("secretRef");
    if (secret.present()) {
        result.secret_ref = secret.text("name");
    }
    const JsonReader volume = source.object("volume");
    if (volume.present()) {
        result.volume = read_volume(volume);
    }
    result.ca_bundle = read_ca_bundle(source);
    return result;
}

LabelSelector read_selector(const JsonReader& selector) {
    LabelSelector result;
    result.match_labels = selector.text_map("matchLabels");
    selector.each("matchExpressions", [&](const JsonReader& item) {
        result.match_expressions.push_back(
            {item.text("key"), item.choice("operator", LabelOperator::kIn), item.texts("values")});
    });
    return result;
}

DatasetSpec read_spec(const JsonReader& spec) {
    DatasetSpec result;
    spec.each("sources", [&](const JsonReader& source) {
        result.sources.push_back(read_source(source));
    });
    result.format = spec.choice("format", DatasetFormat::kObjects);
    const JsonReader consistency = spec.object("consistency");
    result.consistency = consistency.choice("mode", Consistency::kImmutable);
    result.ttl_seconds = consistency.maybe_integer("ttlSeconds");
    const JsonReader selector = spec.object("sharing").object("namespaceSelector");
    if (selector.present()) {
        result.shared_with = read_selector(selector);
    }
    const JsonReader retention = spec.object("retention");
    result.has_retention = retention.present();
    result.retention_after_last_use_seconds = retention.maybe_integer("afterLastUseSeconds");
    return result;
}

DatasetStatus read_status(const JsonReader& status) {
    DatasetStatus result;
    result.observed_generation = status.integer("observedGeneration");
    result.conditions = read_conditions(status);
    const JsonReader columns = status.object("columns");
    result.columns = {
        columns.text("size"),
        columns.text("cached"),
        columns.text("cachedPercentage"),
        columns.text("hit")};
    result.total_bytes = status.maybe_integer("totalBytes");
    result.samples = status.maybe_integer("samples");
    result.cached_bytes = status.integer("cachedBytes");
    result.cached_samples = status.integer("cachedSamples");
    result.cached_percentage = status.integer("cachedPercentage");
    result.hit_ratio = status.text("hitRatio");
    result.nodes = status.integer("nodes");
    result.jobs = status.integer("jobs");
    result.index_revision = status.text("indexRevision");
    result.sampled_at = status.maybe_time("sampledAt");
    status.each("placements", [&](const JsonReader& item) {
        result.placements.push_back(
            {item.text("pool"), item.text("node"), item.integer("bytes"), item.integer("samples")});
    });
    return result;
}

Dataset read_dataset(const JsonReader& root) {
    return {read_meta(root), read_spec(root.object("spec")), read_status(root.object("status"))};
}

JsonWriter write_columns(const DatasetColumns& columns) {
    JsonWriter writer;
    writer.text("size", columns.size)
        .text("cached", columns.cached)
        .text("cachedPercentage", columns.cached_percentage)
        .text("hit", columns.hit);
    return writer;
}

}  // namespace

Result<Dataset> parse_dataset(std::string_view json) {
    return read_document(json, read_dataset);
}

std::set<std::string> dataset_fields() {
    return record_fields(read_dataset);
}

std::string status_patch(const Dataset& dataset) {
    const DatasetStatus& status = dataset.status;
    JsonWriter writer;
    writer.number("observedGeneration", status.observed_generation)
        .list("conditions", status.conditions, write_condition)
        .object("columns", write_columns(status.columns))
        .number("cachedBytes", status.cached_bytes)
        .number("cachedSamples", status.cached_samples)
        .number("cachedPercentage", status.cached_percentage)
        .text("hitRatio", status.hit_ratio)
        .number("nodes", status.nodes)
        .number("jobs", status.jobs)
        .text("indexRevision", status.index_revision)
        .time("sampledAt", status.sampled_at)
        .list("placements", status.placements, [](const DatasetPlacement& placement) {
            JsonWriter item;
            item.text("pool", placement.pool)
                .text("node", placement.node)
                .number("bytes", placement.bytes)
                .number("samples", placement.samples);
            return item;
        });
    if (status.total_bytes) {
        writer.number("totalBytes", *status.total_bytes);
    }
    if (status.samples) {
        writer.number("samples", *status.samples);
    }
    return status_body("Dataset", dataset.meta, writer);
}

}  // namespace stoker::control
