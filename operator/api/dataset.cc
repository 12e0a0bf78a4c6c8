#include "operator/api/dataset.h"

#include <algorithm>

#include "operator/api/shared_fields.h"

namespace stoker::control {

template <>
inline constexpr auto kFields<SourceVolume> = table(
    field("persistentVolumeClaim", &SourceVolume::claim_name, TextOf{"claimName"}),
    field("hostPath", &SourceVolume::host_path, TextOf{"path"}));

template <>
inline constexpr auto kFields<DatasetSource> = table(
    field("storageUri", &DatasetSource::storage_uri),
    field("index", &DatasetSource::index),
    field("endpoint", &DatasetSource::endpoint),
    field("region", &DatasetSource::region),
    field("pathStyle", &DatasetSource::path_style),
    field("secretRef", &DatasetSource::secret_ref, TextOf{"name"}),
    field("volume", &DatasetSource::volume),
    field("caBundle", &DatasetSource::ca_bundle));

template <>
inline constexpr auto kFields<DatasetRecords> =
    table(field("bytes", &DatasetRecords::bytes), field("suffix", &DatasetRecords::suffix));

template <>
inline constexpr auto kFields<DatasetPacking> = table(
    field("from", &DatasetPacking::from),
    field("chunkBytes", &DatasetPacking::chunk_bytes, Quantity{}),
    field("order", &DatasetPacking::order),
    field("seed", &DatasetPacking::seed),
    field("activeDeadlineSeconds", &DatasetPacking::active_deadline_seconds));

template <>
inline constexpr auto kFields<DatasetSpec> = table(
    field("sources", &DatasetSpec::sources),
    field("format", &DatasetSpec::format),
    field("blockSize", &DatasetSpec::block_size, Quantity{}),
    field("records", &DatasetSpec::records),
    field("packing", &DatasetSpec::packing),
    field("consistency.mode", &DatasetSpec::consistency),
    field("consistency.ttlSeconds", &DatasetSpec::ttl_seconds),
    field("sharing.namespaceSelector", &DatasetSpec::shared_with),
    field("retention.afterLastUseSeconds", &DatasetSpec::retention_after_last_use_seconds),
    field("peers", &DatasetSpec::peers));

template <>
inline constexpr auto kFields<DatasetColumns> = table(
    field("size", &DatasetColumns::size),
    field("cached", &DatasetColumns::cached),
    field("cachedPercentage", &DatasetColumns::cached_percentage),
    field("hit", &DatasetColumns::hit));

template <>
inline constexpr auto kFields<DatasetPlacement> = table(
    field("pool", &DatasetPlacement::pool),
    field("node", &DatasetPlacement::node),
    field("bytes", &DatasetPlacement::bytes),
    field("samples", &DatasetPlacement::samples));

template <>
inline constexpr auto kFields<DatasetPeersStatus> = table(
    field("nodes", &DatasetPeersStatus::nodes),
    field("bytesRead", &DatasetPeersStatus::bytes_read),
    field("samples", &DatasetPeersStatus::samples),
    field("hedges", &DatasetPeersStatus::hedges),
    field("failures", &DatasetPeersStatus::failures),
    field("placement", &DatasetPeersStatus::placement));

template <>
inline constexpr auto kFields<DatasetPackingStatus> = table(
    field("packedDigest", &DatasetPackingStatus::packed_digest),
    field("job", &DatasetPackingStatus::job),
    field("failedPods", &DatasetPackingStatus::failed_pods),
    field("chunks", &DatasetPackingStatus::chunks),
    field("samples", &DatasetPackingStatus::samples),
    field("bytes", &DatasetPackingStatus::bytes),
    field("startTime", &DatasetPackingStatus::start_time),
    field("completionTime", &DatasetPackingStatus::completion_time));

template <>
inline constexpr auto kFields<DatasetStatus> = table(
    field("observedGeneration", &DatasetStatus::observed_generation),
    field("conditions", &DatasetStatus::conditions),
    field("columns", &DatasetStatus::columns),
    field("totalBytes", &DatasetStatus::total_bytes),
    field("samples", &DatasetStatus::samples),
    field("cachedBytes", &DatasetStatus::cached_bytes),
    field("cachedSamples", &DatasetStatus::cached_samples),
    field("cachedPercentage", &DatasetStatus::cached_percentage),
    field("hitRatio", &DatasetStatus::hit_ratio),
    field("nodes", &DatasetStatus::nodes),
    field("jobs", &DatasetStatus::jobs),
    field("peers", &DatasetStatus::peers),
    field("packing", &DatasetStatus::packing),
    field("indexRevision", &DatasetStatus::index_revision),
    field("sampledAt", &DatasetStatus::sampled_at),
    field("placements", &DatasetStatus::placements));

template <>
inline constexpr auto kFields<Dataset> = table(
    field("metadata", &Dataset::meta),
    field("spec", &Dataset::spec),
    field("status", &Dataset::status));

template Result<Dataset> read_document<Dataset>(const Json& json);
template std::set<std::string> known_fields<Dataset>();

bool shares_by_peers(const DatasetSpec& spec) {
    const bool has_volume = std::ranges::any_of(
        spec.sources, [](const DatasetSource& source) { return source.volume.has_value(); });
    return spec.peers == PeerMode::kAuto && !has_volume;
}

Json status_patch(const Dataset& dataset) {
    return own_status_body("Dataset", dataset.meta, FieldWriter::write_fields(dataset.status));
}

}  // namespace stoker::control
