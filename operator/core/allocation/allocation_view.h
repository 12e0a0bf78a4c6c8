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
// does not matter. External numbers may have any value: NaN, negative and out-of-range ones count
// as unknown.
namespace stoker::control {

// A node of a pool. A node may be in several pools, with a volume in each.
struct PoolNode {
    std::string pool;
    std::string node;
    Bytes capacity{};

    bool operator==(const PoolNode&) const = default;
};

// Quota of a namespace without a CacheQuota in the pool. By default it guarantees no bytes and may
// borrow all idle ones.
struct DefaultQuota {
    Bytes nominal{};
    Bytes borrowing = Bytes::unlimited();
    Bytes lending = Bytes::unlimited();

    bool operator==(const DefaultQuota&) const = default;
};

// The allocation settings of a pool. A pool that is not listed has the defaults.
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
    Bytes borrowing{};                 // borrowingLimit: bytes beyond nominal, while idle elsewhere
    Bytes lending{};                   // lendingLimit: bytes of nominal that others may use
    double weight = 1;                 // weight of the namespace's jobs in dividing borrowed bytes
    std::uint32_t grace_seconds = 30;  // for borrowers to return bytes
    ReclaimPolicy reclaim = ReclaimPolicy::kAny;  // of bytes that it has lent

    bool operator==(const QuotaView&) const = default;
};

enum class AccessKind : std::uint8_t {
    kExact,       // every sample once per epoch, in the trainer's order
    kWindowed,    // every sample once per epoch, in Stoker's order: jobs share fetches
    kImportance,  // a sample is kept with probability percentile^beta
    kMeasured,    // a rank sketch from the sidecars
    kReplicate,   // draws with replacement; resident samples more often
};

// A job's order of reading a dataset, which determines its miss curve.
struct AccessPattern {
    AccessKind kind = AccessKind::kExact;
    double beta = 1;            // kImportance
    std::vector<float> sketch;  // kMeasured: as MissCurve::measured()
    double full_epochs = 0;     // kImportance: share of its epochs that read everything, 0..1
    // Contract replicate: how often an epoch reads a resident sample; 0: each sample is read once.
    double replication = 0;
    double bias = 0;  // kReplicate

    bool operator==(const AccessPattern&) const = default;
};

struct DemandDataset {
    std::string name;            // its key in spec.datasets of the job
    std::string uid;             // names the node directory
    std::optional<Bytes> total;  // none until the origin is listed
    AccessPattern access{};
    double sample_bytes = 0;  // mean; 0: unknown
    std::string ns{};         // the Dataset's namespace, which is charged; empty: the job's own

    bool operator==(const DemandDataset&) const = default;
};

// Measured rates of a job over all its nodes.
struct JobRates {
    double ingest = 0;      // f*, bytes/s that it would read if it never waited for data
    double origin = 0;      // bytes/s that the origin gives it; 0: not known
    double confidence = 1;  // 0..1
    bool compute_bound = false;

    bool operator==(const JobRates&) const = default;
};

// Cache demand of one running job, or of one Dataset's fillers.
struct Demand {
    ObjectKey job;
    WallTime created_at{};
    std::string pool;
    CacheMode mode = CacheMode::kAuto;  // kAuto or kFixed
    std::optional<Bytes> max_bytes;     // over all nodes
    Bytes min_bytes{};                  // over all nodes
    std::vector<DemandDataset> datasets;
    std::vector<std::string> nodes;   // nodes with its pods; no duplicates
    std::optional<JobRates> rates{};  // none: being profiled
    double weight = 1;
    std::int32_t priority = 0;                    // higher first, if minimums do not all fit
    std::optional<double> last_epoch_progress{};  // 0..1 in the last epoch
    // True: no job reads yet; fillers fetch in advance (docs/adr/0024). A fill gets bytes that no
    // job wants. Its mode is Auto, without a minimum; its rates and weight do not count.
    bool fill = false;
    // Subset of `nodes` where the fill has ended: there it wants only its present bytes.
    std::vector<std::string> filled{};

    bool operator==(const Demand&) const = default;
};

// Bytes of a dataset on a node: in use by a job, or idle.
struct Holding {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};
    Bytes granted{};      // last grant
    Bytes outstanding{};  // largest grant that its sidecar may still act on
    std::string ns{};     // the dataset's namespace; empty: no namespace is charged for idle bytes
    // The sidecar has not confirmed its last grant. It gets no new grant until then, because a
    // confirmation could refer to either grant.
    bool in_flight = false;
    WallTime last_used{};  // the least recently used idle dataset is evicted first
    // The last plan's target (AllocationPlan::targets), from which hysteresis counts; the grant may
    // not have reached it yet. None: not known, `granted` counts.
    std::optional<Bytes> target{};
    // No leader on the node has counted `resident`, and none has a grant: the number is from a
    // status or an ended sidecar, and the disk may hold fewer bytes.
    bool uncounted = false;

    bool operator==(const Holding&) const = default;
};

// A namespace that gets no new bytes in a pool until a sidecar returns late bytes. `why`: a
// sentence that names the pod.
struct HeldBack {
    std::string pool;
    std::string ns;
    std::string why;

    bool operator==(const HeldBack&) const = default;
};

// Nodes that fetch the samples of a dataset from each other, so that each of them owns an equal
// share (docs/adr/0016-peers.md). At most one per dataset; nodes in any pool, each once.
struct PeerNodes {
    std::string dataset_uid;
    std::vector<std::string> nodes;

    bool operator==(const PeerNodes&) const = default;
};

struct AllocationView {
    std::vector<PoolNode> nodes;
    std::vector<PoolView> pools;
    std::vector<QuotaView> quotas;
    std::vector<Demand> demands;
    std::vector<Holding> holdings;
    std::uint32_t valid_seconds = 60;
    // Smallest piece of a curve and change of a grant: one segment, or 1/256 of the smallest node.
    Bytes step{1};
    double hysteresis = 1.05;  // bytes move only for a gain of this factor
    // False: grants of an earlier operator may still be in force (GrantBook), so no dataset is
    // granted more than its resident bytes.
    bool settled = true;
    std::vector<HeldBack> held_back{};
    std::vector<PeerNodes> peers{};

    bool operator==(const AllocationView&) const = default;
};

}  // namespace stoker::control
