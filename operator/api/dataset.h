#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/ca_bundle.h"
#include "operator/api/choices.h"
#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/label_selector.h"
#include "operator/api/meta.h"

// Dataset of stoker.dev/v1alpha1 as values; crds/stoker.dev_datasets.yaml describes every field.
namespace stoker::control {

// The volume of a file:// source. Exactly one member is set in a valid spec.
struct SourceVolume {
    std::optional<std::string> claim_name;
    std::optional<std::string> host_path;

    bool operator==(const SourceVolume&) const = default;
};

struct DatasetSource {
    std::string storage_uri;
    std::string endpoint;
    std::string region;
    std::optional<bool> path_style;  // none: depends on the endpoint
    std::optional<std::string> secret_ref;
    std::optional<SourceVolume> volume;
    std::optional<CaBundle> ca_bundle{};
    std::string index{};  // of an http(s):// source; empty: the sidecar's default

    bool operator==(const DatasetSource&) const = default;
};

// The rows of format kRecords.
struct DatasetRecords {
    std::int64_t bytes = 0;  // of a row
    std::string suffix;      // of the objects' keys that have rows; empty: all

    bool operator==(const DatasetRecords&) const = default;
};

inline constexpr std::int64_t kPackingDeadlineSeconds = 7 * 24 * 3600;

// How the operator makes the chunks at sources[0] (docs/adr/0029).
struct DatasetPacking {
    DatasetSource from;
    Bytes chunk_bytes = mib(4);
    PackingOrder order = PackingOrder::kRandom;
    std::int64_t seed = 0;  // of order kRandom
    std::int64_t active_deadline_seconds = kPackingDeadlineSeconds;

    bool operator==(const DatasetPacking&) const = default;
};

struct DatasetSpec {
    std::vector<DatasetSource> sources;
    DatasetFormat format = DatasetFormat::kObjects;
    std::optional<Bytes> block_size{};        // of format kBlocks; none: the sidecar's default
    std::optional<DatasetRecords> records{};  // of format kRecords
    std::optional<DatasetPacking> packing{};  // of format kChunks
    Consistency consistency = Consistency::kImmutable;
    std::optional<std::int64_t> ttl_seconds;
    std::optional<LabelSelector> shared_with;  // other namespaces; none: not shared
    std::optional<std::int64_t> retention_after_last_use_seconds;
    PeerMode peers = PeerMode::kAuto;

    bool operator==(const DatasetSpec&) const = default;
};

struct DatasetColumns {
    std::string size;
    std::string cached;
    std::string cached_percentage;
    std::string hit;

    bool operator==(const DatasetColumns&) const = default;
};

// Bytes of the dataset on one node, kept in status for the operator's next start.
struct DatasetPlacement {
    std::string pool;
    std::string node;
    std::int64_t bytes = 0;
    std::int64_t samples = 0;

    bool operator==(const DatasetPlacement&) const = default;
};

// Traffic between nodes, summed over the sidecars that report now.
struct DatasetPeersStatus {
    std::int64_t nodes = 0;
    std::int64_t bytes_read = 0;
    std::int64_t samples = 0;
    std::int64_t hedges = 0;
    std::int64_t failures = 0;
    SamplePlacement placement = SamplePlacement::kHash;

    bool operator==(const DatasetPeersStatus&) const = default;
};

struct DatasetPackingStatus {
    // packing_digest() of the packing that is complete; empty: that of the spec is not.
    std::string packed_digest;
    std::string job;  // the last one
    std::int64_t failed_pods = 0;
    // These describe the complete pack; 0: unknown.
    std::int64_t chunks = 0;
    std::int64_t samples = 0;
    std::int64_t bytes = 0;
    std::optional<WallTime> start_time;
    std::optional<WallTime> completion_time;

    bool operator==(const DatasetPackingStatus&) const = default;
};

struct DatasetStatus {
    std::int64_t observed_generation = 0;
    std::vector<Condition> conditions;  // sorted by type
    DatasetColumns columns;
    std::optional<std::int64_t> total_bytes;
    std::optional<std::int64_t> samples;
    std::int64_t cached_bytes = 0;
    std::int64_t cached_samples = 0;
    std::int64_t cached_percentage = 0;
    std::string hit_ratio;
    std::int64_t nodes = 0;
    std::int64_t jobs = 0;
    std::optional<DatasetPeersStatus> peers;        // none: fewer than two nodes share its samples
    std::optional<DatasetPackingStatus> packing{};  // none: spec.packing is not set
    std::string index_revision;
    std::optional<WallTime> sampled_at;
    std::vector<DatasetPlacement> placements;  // most bytes first, at most kPlacementCountMax

    bool operator==(const DatasetStatus&) const = default;
};

inline constexpr std::size_t kPlacementCountMax = 256;

// Whether nodes fetch the samples from each other. Never from a volume: its revision contains inode
// numbers, which differ between nodes.
bool shares_by_peers(const DatasetSpec& spec);

struct Dataset {
    ObjectMeta meta;
    DatasetSpec spec;
    DatasetStatus status;

    bool operator==(const Dataset&) const = default;
};

// Body of a server-side apply to /status, as status_patch() of a TrainingJob.
Json status_patch(const Dataset& dataset);

}  // namespace stoker::control
