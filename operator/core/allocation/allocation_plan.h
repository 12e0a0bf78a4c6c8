#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/meta.h"
#include "operator/api/sidecar_report.h"

// Output of plan_allocation().
namespace stoker::control {

// Why a job has the bytes that it has; the reason of its condition CacheAllocated.
enum class AllocationReason : std::uint8_t {
    kGranted,               // the job has all bytes that it can use, or nearly all
    kBorrowed,              // as kGranted, but partly beyond the namespace's nominal quota
    kComputeBound,          // it does not wait for data: gets its minimum only
    kQuotaExhausted,        // its namespace has no quota left
    kLowerMarginalBenefit,  // the same bytes save other jobs more reads of the origin
    kPoolFull,              // its nodes are full, and no bytes there have a lower value
    kReclaimed,             // its borrowed bytes return to their owner
    kProfiling,             // a dataset's size or the job's rates are not known yet
    kWaitingForPods,        // no pod is on a node of the pool yet
    kStopped,               // stopPolicy of the pool or of the quota
};

// Texts of AllocationReason, in the order of its values.
inline constexpr std::array<std::string_view, 10> kAllocationReasonTexts{
    "Granted",
    "Borrowed",
    "ComputeBound",
    "QuotaExhausted",
    "LowerMarginalBenefit",
    "PoolFull",
    "Reclaimed",
    "Profiling",
    "WaitingForPods",
    "Stopped"};

std::string_view to_string(AllocationReason reason);

// Numbers behind a reason. Rates are bytes/s over all nodes of the job; 0: unknown.
struct AllocationNumbers {
    double ingest_rate = 0;         // f*: what the job would read if data were never late
    double origin_rate = 0;         // bytes/s from the origin, under the plan's limit
    double rate_without_cache = 0;  // predicted
    double rate = 0;                // predicted for the time when the plan is carried out
    double marginal_per_gib = 0;    // origin bytes/s that the next GiB would save
    double threshold_per_gib = 0;   // origin bytes/s that the next GiB must save to be granted

    bool operator==(const AllocationNumbers&) const = default;
};

struct JobAllocation {
    ObjectKey job;
    std::string pool;
    Bytes wanted{};   // over all its nodes
    Bytes granted{};  // over all its nodes; bytes shared with another job count for both
    AllocationReason reason = AllocationReason::kWaitingForPods;
    std::string message;  // one sentence for people
    // For each dataset of the job, as in Demand::datasets: the largest grant that a sidecar may
    // still act on. Exceeds the planned grant until the sidecars confirm the plan. The next
    // operator uses this value for sidecars it cannot reach.
    std::vector<Bytes> datasets;
    Bytes borrowed{};    // part of `granted`
    Bytes minimum{};     // requested minimum, at most the datasets' sizes
    Bytes guaranteed{};  // part of `minimum` covered by nominal quotas and nodes
    Bytes target{};      // final grant, once other jobs have returned their bytes
    AllocationNumbers numbers{};

    bool operator==(const JobAllocation&) const = default;
};

// Bytes charged to a job: those of its own namespace's datasets, divided evenly among the
// namespace's jobs on the node. Bytes of another namespace's dataset are charged to that namespace
// only.
struct QuotaCharge {
    ObjectKey job;
    std::string pool;
    Bytes charged{};
    double marginal_per_gib = 0;

    bool operator==(const QuotaCharge&) const = default;
};

// A quota's account under the plan. used <= nominal + borrowed. In each pool, the sum of `borrowed`
// (including namespaces without a quota) equals the sum of `lent` plus the borrowed bytes outside
// all nominal quotas.
struct QuotaUse {
    std::string ns;
    std::string pool;
    Bytes used{};  // bytes of the namespace's datasets: granted to jobs of any namespace, or idle
    Bytes borrowed{};
    Bytes lent{};

    bool operator==(const QuotaUse&) const = default;
};

// A dataset that must shrink on a node, and the deadline.
struct Reclaim {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};
    Bytes granted{};
    std::uint32_t grace_seconds = 0;
    std::string ns{};  // the namespace charged for the bytes

    bool operator==(const Reclaim&) const = default;
};

// Bytes of an unused dataset to remove because jobs lack space on the node or in the namespace's
// quota. Only as many bytes as needed, least recently used first.
struct Sweep {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};

    bool operator==(const Sweep&) const = default;
};

// The part of a pool's origin bandwidth that its jobs leave to fills.
struct FillOrigin {
    std::string pool;
    std::uint64_t bytes_per_second = 0;
    // Number of (dataset, node) pairs that jobs without a profile read. Each may need as much
    // bandwidth as one fill.
    std::uint32_t unprofiled = 0;

    bool operator==(const FillOrigin&) const = default;
};

// Final bytes of a dataset that a job uses on a node, once other datasets have returned theirs; an
// input of the next plan (Holding::target).
struct Target {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes bytes{};

    bool operator==(const Target&) const = default;
};

// All lists are sorted, by the keys in the comments.
struct AllocationPlan {
    // By node, dataset; one per dataset that a job uses, except those in PoolDecision::withheld.
    std::vector<Grant> grants;
    std::vector<Target> targets;       // by pool, node, dataset
    std::vector<JobAllocation> jobs;   // by job
    std::vector<QuotaCharge> charges;  // by job
    std::map<std::string, Bytes> granted_in_pool;
    std::vector<QuotaUse> quotas;          // by namespace, pool
    std::vector<Reclaim> reclaims;         // by node, dataset
    std::vector<Sweep> sweeps;             // by node, dataset
    std::vector<FillOrigin> fill_origins;  // by pool; only of pools with an origin bandwidth

    bool operator==(const AllocationPlan&) const = default;
};

}  // namespace stoker::control
