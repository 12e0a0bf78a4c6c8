#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/domain/manifest_marks.h"

// Sidecars' reports to the operator: proto/control/v1/control.proto as plain values for both
// programs. A sidecar fills them, the operator validates them (operator/sidecars/report_rules.h).
// Counters are totals since the sidecar's start unless stated otherwise.
namespace stoker::control {

struct DatasetMount {
    std::string name;         // under spec.datasets of the TrainingJob
    std::string dataset_uid;  // names the node directory

    bool operator==(const DatasetMount&) const = default;
};

// A sidecar's first message: its claimed identity.
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

// The skew of one job's reads of a dataset on one node. `masses`: as MissCurve::measured().
struct RankSketch {
    std::string job_uid;
    std::uint64_t revision = 0;  // increases when the masses change
    std::vector<float> masses;   // finite, 0 or more, at most kRankSketchSizeMax
    double volume = 0;           // bytes read per epoch, as a share of the dataset

    bool operator==(const RankSketch&) const = default;
};

inline constexpr std::size_t kRankSketchSizeMax = 1024;

// Limit by the node's disk, whatever the grant.
struct DiskLimit {
    Bytes resident{};   // upper limit of the dataset's bytes
    Bytes kept_free{};  // free space of the disk: reservedFree, and room for the window

    bool operator==(const DiskLimit&) const = default;
};

// How far a leader is with its FillOrder. Bytes are payload.
struct FillProgress {
    std::uint64_t samples = 0;  // that the node owns
    Bytes bytes{};
    std::uint64_t stored_samples = 0;  // of these: resident
    Bytes stored_bytes{};
    std::uint64_t refused_samples = 0;  // of these: refused by the origin, or too large to cache
    bool over = false;  // all were looked at since the last order; no room is left for the rest
    bool shut = false;  // nothing is fetched now: disk or origin fail, or the cache is bypassed

    bool operator==(const FillProgress&) const = default;
};

// The first difference between a rank's listing and the pinned one: among the `keys` keys of the
// rank's listing from `key` on. Empty and 0: not known.
struct OriginChange {
    std::string key;
    std::uint64_t keys = 0;

    bool operator==(const OriginChange&) const = default;
};

// One sidecar's report on one dataset on its node.
struct DatasetReport {
    std::string name;         // under spec.datasets of the TrainingJob
    std::string dataset_uid;  // names the node directory
    bool leader = false;      // only a leader knows the node's bytes
    ManifestState manifest_state = ManifestState::kUnknown;
    std::string error;  // the origin's error, or the reason for admitting nothing
    std::uint64_t objects_listed = 0;
    std::string revision;
    std::uint64_t samples = 0;
    Bytes total_bytes{};
    Bytes resident_bytes{};
    std::uint64_t resident_samples = 0;
    Bytes window_bytes{};
    Bytes granted_bytes{};
    Bytes cache_bytes_read{};   // by this pod's trainers, without using the origin link for it
    Bytes origin_bytes_read{};  // fetched by this sidecar, for any reader
    std::uint64_t origin_requests = 0;
    std::uint64_t hit_samples = 0;   // of cache_bytes_read
    std::uint64_t miss_samples = 0;  // of miss_bytes_read
    std::uint64_t corrupt_samples = 0;
    bool admitting = true;
    Duration origin_request_time{};      // of origin_requests, summed; zero: not measured
    std::vector<RankSketch> sketches{};  // of jobs that read by importance, one each; leaders only
    Bytes miss_bytes_read{};  // by this pod's trainers, fetched from the origin for this read
    std::optional<DiskLimit> disk_limit{};  // reported by leaders
    std::string read_revision{};    // read by its trainers, or by them once pinned: 16 hex digits
    domain::ManifestMarks marks{};  // of read_revision; from leaders with a pinned revision
    std::optional<OriginChange> origin_change{};  // its trainers cannot read the pinned revision
    std::string changed_key{};  // first object that differed from its listing when it was fetched

    // From leaders: bytes that the window needs for the jobs that share it, while it cannot have
    // them; otherwise zero.
    Bytes window_needed_bytes{};
    Bytes window_lacks_bytes{};  // beyond grant and window together

    // From leaders that accept peers. The bytes and samples are those fetched from peers.
    std::string peer_address{};         // "host:port"; empty: no peers
    std::uint64_t peer_generation = 0;  // of its lead; not 0
    Bytes peer_bytes_read{};
    std::uint64_t peer_samples = 0;
    std::uint64_t peer_hedges = 0;    // fetched at the origin because the peer was slow
    std::uint64_t peer_failures = 0;  // the same, because it failed, refused or was not asked
    std::uint64_t peer_connect_failures = 0;  // connections not made, or ended before a Hello
    std::uint64_t peer_group_version = 0;  // of the PeerGroup that the sidecar has, leader or not
    bool reads_differ = false;  // its trainers have read in another order than KnownReads say

    std::optional<FillProgress> fill{};  // from leaders with a FillOrder

    bool operator==(const DatasetReport&) const = default;
};

// The batches that a Probe read past the cache, or those that it read through it. `time`: summed
// from each batch's request to the next request.
struct ProbeSide {
    std::uint64_t batches = 0;
    Duration time{};
    Bytes bytes{};

    bool operator==(const ProbeSide&) const = default;
};

// Results so far of the Probe with this id, summed over the pod's processes; 0: no Probe. Restarts
// at zero with each Probe.
struct ProbeReport {
    std::uint64_t id = 0;
    ProbeSide bypassed;
    ProbeSide cached;

    bool operator==(const ProbeReport&) const = default;
};

// Totals from this pod's trainers, summed over their processes.
struct TrainerReport {
    std::uint64_t epoch = 0;
    std::uint64_t samples = 0;
    Bytes bytes{};
    std::uint64_t steps = 0;
    Duration wait{};     // for data
    Duration compute{};  // from a batch to the next request
    std::uint64_t fallback_samples = 0;
    std::uint64_t epoch_samples = 0;  // length of this rank's epoch plan, 0: not known
    std::uint64_t epoch_position = 0;
    ProbeReport probe{};

    bool operator==(const TrainerReport&) const = default;
};

// Asks the operator for a PeerCertificate: a PKCS#10 request, PEM.
struct PeerRequest {
    static constexpr std::size_t kBytesMax = 4096;

    std::string request_pem;

    bool operator==(const PeerRequest&) const = default;
};

struct Report {
    std::uint64_t sequence = 0;  // 1, 2, 3, ...
    std::vector<DatasetReport> datasets;
    TrainerReport trainer;

    bool operator==(const Report&) const = default;
};

}  // namespace stoker::control
