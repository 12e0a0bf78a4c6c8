#include "operator/api/dataset_warmup.h"

#include "operator/api/shared_fields.h"

namespace stoker::control {

template <>
inline constexpr auto kFields<WarmupNodes> = table(
    field("names", &WarmupNodes::names),
    field("selector", &WarmupNodes::selector),
    field("count", &WarmupNodes::count));

template <>
inline constexpr auto kFields<DatasetWarmupSpec> = table(
    field("datasetRef.name", &DatasetWarmupSpec::dataset_ref),
    field("poolRef.name", &DatasetWarmupSpec::pool_ref),
    field("nodes", &DatasetWarmupSpec::nodes),
    field("rateLimit", &DatasetWarmupSpec::rate_limit, Quantity{}),
    field("schedule", &DatasetWarmupSpec::schedule),
    field("suspend", &DatasetWarmupSpec::suspend),
    field("ttlSecondsAfterFinished", &DatasetWarmupSpec::ttl_seconds_after_finished));

template <>
inline constexpr auto kFields<DatasetWarmupColumns> = table(
    field("state", &DatasetWarmupColumns::state),
    field("warmed", &DatasetWarmupColumns::warmed),
    field("percentage", &DatasetWarmupColumns::percentage),
    field("nodes", &DatasetWarmupColumns::nodes));

template <>
inline constexpr auto kFields<WarmupNodeStatus> = table(
    field("node", &WarmupNodeStatus::node),
    field("state", &WarmupNodeStatus::state),
    field("totalBytes", &WarmupNodeStatus::total_bytes),
    field("totalSamples", &WarmupNodeStatus::total_samples),
    field("bytesWarmed", &WarmupNodeStatus::bytes_warmed),
    field("samplesWarmed", &WarmupNodeStatus::samples_warmed),
    field("samplesRefused", &WarmupNodeStatus::samples_refused),
    field("message", &WarmupNodeStatus::message),
    field("silentSince", &WarmupNodeStatus::silent_since));

template <>
inline constexpr auto kFields<DatasetWarmupStatus> = table(
    field("observedGeneration", &DatasetWarmupStatus::observed_generation),
    field("conditions", &DatasetWarmupStatus::conditions),
    field("columns", &DatasetWarmupStatus::columns),
    field("pool", &DatasetWarmupStatus::pool),
    field("totalBytes", &DatasetWarmupStatus::total_bytes),
    field("totalSamples", &DatasetWarmupStatus::total_samples),
    field("bytesWarmed", &DatasetWarmupStatus::bytes_warmed),
    field("samplesWarmed", &DatasetWarmupStatus::samples_warmed),
    field("startTime", &DatasetWarmupStatus::start_time),
    field("completionTime", &DatasetWarmupStatus::completion_time),
    field("lastScheduleTime", &DatasetWarmupStatus::last_schedule_time),
    field("nextScheduleTime", &DatasetWarmupStatus::next_schedule_time),
    field("sampledAt", &DatasetWarmupStatus::sampled_at),
    field("nodes", &DatasetWarmupStatus::nodes));

template <>
inline constexpr auto kFields<DatasetWarmup> = table(
    field("metadata", &DatasetWarmup::meta),
    field("spec", &DatasetWarmup::spec),
    field("status", &DatasetWarmup::status));

template Result<DatasetWarmup> read_document<DatasetWarmup>(const Json& json);
template std::set<std::string> known_fields<DatasetWarmup>();

Json status_patch(const DatasetWarmup& warmup) {
    return own_status_body("DatasetWarmup", warmup.meta, FieldWriter::write_fields(warmup.status));
}

}  // namespace stoker::control
