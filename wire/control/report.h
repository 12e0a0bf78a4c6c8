#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/domain/manifest_marks.h"

// What sidecars tell the operator: proto/control/v1/control.proto as plain values, which both
// programs use. A sidecar fills them, the operator judges them (operator/sidecars/report_rules.h).
// Counters are totals since the sidecar's start unless they say otherwise.
namespace stoker::control {

struct DatasetMount {
    std::string name;         // under spec.datasets of the TrainingJob
    std::string dataset_uid;  // names the node directory

    bool operator==(const DatasetMount&) const = default;
};

// A sidecar's first message: who it claims to be.
struct Hello {
    std::string namespace_name;
    std::string pod;
    std::string node;
    std::string training_job;
    std::string training_job_uid;
    std::int32_t rank = 0;  // of the pod, 0..numNodes-1
    std::string version;    // of the sidecar
    std::vector<DatasetMount> mounts;

    bool operator==(const Hello&) const = default;
};

enum class ManifestState : std::uint8_t { kUnknown, kListing, kReady, kFailed };

// How unevenly one job reads a dataset on one node. `masses`: as MissCurve::measured().
struct RankSketch {
    std::string job_uid;
    std::uint64_t revision = 0;  // goes up when the masses change
    std::vector<float> masses;   // finite, 0 or more, at most kRankSketchSizeMax
    double volume = 0;           // bytes that it reads an epoch, as a share of the dataset

    bool operator==(const RankSketch&) const = default;
};

inline constexpr std::size_t kRankSketchSizeMax = 1024;

// A node's disk allows no more than this, whatever the grant says.
struct DiskLimit {
    Bytes resident{};   // that may be there of the dataset
    Bytes kept_free{};  // of the disk: reservedFree, and room for the window

    bool operator==(const DiskLimit&) const = default;
};

// Where the listing of a rank begins to differ from the pinned one: at `key` of its own listing, or
// among `keys` keys from there on. Empty and 0: not known.
struct OriginChange {
    std::string key;
    std::uint64_t keys = 0;

    bool operator==(const OriginChange&) const = default;
};

// One sidecar's report on one dataset on its node.
struct DatasetReport {
    std::string name;         // under spec.datasets of the TrainingJob
    std::string dataset_uid;  // names the node directory
    bool leader = false;      // only a leader knows what is on the node
    ManifestState manifest_state = ManifestState::kUnknown;
    std::string error;  // the origin's words, or why nothing is admitted
    std::uint64_t objects_listed = 0;
    std::string revision;
    std::uint64_t samples = 0;
    Bytes total_bytes{};
    Bytes resident_bytes{};
    std::uint64_t resident_samples = 0;
    Bytes window_bytes{};
    Bytes granted_bytes{};
    Bytes cache_bytes_read{};   // by this pod's trainers, without crossing the link for it
    Bytes origin_bytes_read{};  // fetched by this sidecar, for whoever reads it
    std::uint64_t origin_requests = 0;
    std::uint64_t hit_samples = 0;   // of cache_bytes_read
    std::uint64_t miss_samples = 0;  // of miss_bytes_read
    std::uint64_t corrupt_samples = 0;
    bool admitting = true;
    Duration origin_request_time{};      // of origin_requests, summed; zero: not measured
    std::vector<RankSketch> sketches{};  // of jobs that read by importance, one each; leaders only
    Bytes miss_bytes_read{};  // by this pod's trainers, from the origin for this very read
    std::optional<DiskLimit> disk_limit{};  // told by leaders
    std::string read_revision{};    // its trainers read it, or will once pinned: 16 hex digits
    domain::ManifestMarks marks{};  // of it; told by leaders whose revision is pinned
    std::optional<OriginChange> origin_change{};  // its trainers cannot read the pinned revision
    std::string changed_key{};  // the first object that was not as listed when it was fetched

    bool operator==(const DatasetReport&) const = default;
};

// Batches of one side of a measurement, and how long they took from asking to asking.
struct ProbeSide {
    std::uint64_t batches = 0;
    Duration time{};
    Bytes bytes{};

    bool operator==(const ProbeSide&) const = default;
};

// What has been measured so far of the Probe with this id, summed over the pod's processes; 0: of
// none. Begins at zero with each Probe.
struct ProbeReport {
    std::uint64_t id = 0;
    ProbeSide bypassed;
    ProbeSide cached;

    bool operator==(const ProbeReport&) const = default;
};

// Totals that the trainers of this pod told, summed over their processes.
struct TrainerReport {
    std::uint64_t epoch = 0;
    std::uint64_t samples = 0;
    Bytes bytes{};
    std::uint64_t steps = 0;
    Duration wait{};     // for data
    Duration compute{};  // between a batch and the next one asked for
    std::uint64_t fallback_samples = 0;
    std::uint64_t epoch_samples = 0;  // length of this rank's epoch plan, 0: not known
    std::uint64_t epoch_position = 0;
    ProbeReport probe{};

    bool operator==(const TrainerReport&) const = default;
};

struct Report {
    std::uint64_t sequence = 0;  // from 1, by 1
    std::vector<DatasetReport> datasets;
    TrainerReport trainer;

    bool operator==(const Report&) const = default;
};

}  // namespace stoker::control
