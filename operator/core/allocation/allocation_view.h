#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/choices.h"
#include "operator/api/meta.h"

// Input of plan_allocation(): the whole cluster's cache as plain values. The order of the lists
// does not matter. External numbers may have any value: NaN, negative or absurd ones count as
// unknown.
namespace stoker::control {

// A node of a pool. A node may be in several pools, with a volume in each.
struct PoolNode {
    std::string pool;
    std::string node;
    Bytes capacity{};

    bool operator==(const PoolNode&) const = default;
};

// Quota of each namespace that has none of its own in a pool. By default it guarantees no bytes and
// allows borrowing all idle ones.
struct DefaultQuota {
    Bytes nominal{};
    Bytes borrowing = Bytes::unlimited();
    Bytes lending = Bytes::unlimited();

    bool operator==(const DefaultQuota&) const = default;
};

// How a pool allocates its bytes. A pool that is not listed has the defaults.
struct PoolView {
    std::string pool;
    StopPolicy stop = StopPolicy::kNone;
    Objective objective = Objective::kThroughput;
    double origin_bytes_per_second = 0;  // total rate of the origins for all jobs; 0: not known
    double price_per_gib = 0;            // money, for Objective::kCost
    double price_per_request = 0;        // money, for Objective::kCost
    DefaultQuota default_quota{};

    bool operator==(const PoolView&) const = default;
};

// The quota of a namespace in a pool; at most one per pair. A pair without one gets the pool's
// DefaultQuota. Field names are Kueue's.
struct QuotaView {
    std::string ns;
    std::string pool;
    Bytes nominal{};
    StopPolicy stop = StopPolicy::kNone;
    Bytes borrowing{};                 // bytes beyond nominal that nobody else needs
    Bytes lending{};                   // bytes of nominal that others may use meanwhile
    double weight = 1;                 // of the namespace's jobs where borrowed bytes are divided
    std::uint32_t grace_seconds = 30;  // for a borrower to return bytes
    ReclaimPolicy reclaim = ReclaimPolicy::kAny;  // of what it has lent

    bool operator==(const QuotaView&) const = default;
};

enum class AccessKind : std::uint8_t {
    kExact,       // every sample once per epoch, the trainer's order
    kWindowed,    // every sample once per epoch, our order: jobs share fetches
    kImportance,  // kept with probability percentile^beta
    kMeasured,    // a rank sketch from the sidecars
};

// How a job reads a dataset. Determines its miss curve.
struct AccessPattern {
    AccessKind kind = AccessKind::kExact;
    double beta = 1;            // kImportance
    std::vector<float> sketch;  // kMeasured: as MissCurve::measured()

    bool operator==(const AccessPattern&) const = default;
};

struct DemandDataset {
    std::string name;            // under spec.datasets
    std::string uid;             // names the node directory
    std::optional<Bytes> total;  // none until the origin is listed
    AccessPattern access{};
    double sample_bytes = 0;  // mean; 0: not known
    std::string ns{};         // of the Dataset: it pays for the bytes; empty: the job's own

    bool operator==(const DemandDataset&) const = default;
};

// Measured rates of a job, over all its nodes.
struct JobRates {
    double ingest = 0;      // f*, bytes/s that it would read without waiting for data
    double origin = 0;      // bytes/s that the origin gives it; 0: not known
    double confidence = 1;  // 0..1
    bool compute_bound = false;

    bool operator==(const JobRates&) const = default;
};

// Cache demand of one running job.
struct Demand {
    ObjectKey job;
    WallTime created_at{};
    std::string pool;
    CacheMode mode = CacheMode::kAuto;  // kAuto or kFixed
    std::optional<Bytes> max_bytes;     // over all nodes
    Bytes min_bytes{};                  // over all nodes
    std::vector<DemandDataset> datasets;
    std::vector<std::string> nodes;   // where its pods are; each once
    std::optional<JobRates> rates{};  // none: being profiled
    double weight = 1;
    std::int32_t priority = 0;                    // higher first, where minimums do not all fit
    std::optional<double> last_epoch_progress{};  // 0..1 in the last epoch

    bool operator==(const Demand&) const = default;
};

// Bytes of a dataset on a node, in use by a job or idle but still taking space.
struct Holding {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};
    Bytes granted{};      // the last grant, for StopPolicy::kHold and for hysteresis
    Bytes outstanding{};  // largest grant that its sidecar may still act on
    std::string ns{};     // the dataset's; empty: idle bytes are charged to nobody
    // The sidecar has not confirmed its last grant. It gets no other one until then, because a
    // confirmation could belong to either of two grants.
    bool in_flight = false;
    WallTime last_used{};  // the least recently used idle dataset is evicted first

    bool operator==(const Holding&) const = default;
};

// A namespace that gets no more bytes in a pool until a sidecar has returned what it must. `why` is
// the sentence that names it.
struct HeldBack {
    std::string pool;
    std::string ns;
    std::string why;

    bool operator==(const HeldBack&) const = default;
};

struct AllocationView {
    std::vector<PoolNode> nodes;
    std::vector<PoolView> pools;
    std::vector<QuotaView> quotas;
    std::vector<Demand> demands;
    std::vector<Holding> holdings;
    std::uint32_t valid_seconds = 60;
    Bytes step{1};             // step on a non-linear curve (one segment); or
                               // 1/256 of the smallest node, if less
    double hysteresis = 1.05;  // bytes move only for a gain of this factor
    // False: another operator's grants may still be in force, so no grant exceeds the resident
    // bytes.
    bool settled = true;
    std::vector<HeldBack> held_back{};

    bool operator==(const AllocationView&) const = default;
};

}  // namespace stoker::control
