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

// What plan_allocation() decides.
namespace stoker::control {

// One word why a job has the bytes that it has; the reason of its condition CacheAllocated.
enum class AllocationReason : std::uint8_t {
    kGranted,               // all that it can use, but for a hair on its way
    kBorrowed,              // the same, some of it beyond the namespace's nominal quota
    kComputeBound,          // it does not wait for data: its minimum and nothing else
    kQuotaExhausted,        // its namespace may hold no more
    kLowerMarginalBenefit,  // the same bytes are worth more to others
    kPoolFull,              // no room on its nodes, and nobody's bytes there are worth less
    kReclaimed,             // bytes that it had borrowed go back to their owner
    kProfiling,             // the size of a dataset or the job's rates are not known yet
    kWaitingForPods,        // no pod is on a node of the pool yet
    kStopped,               // stopPolicy of the pool or of the quota
};

// In the order of the values.
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

// The numbers behind a reason. Rates in bytes/s over all nodes of the job; 0: not known.
struct AllocationNumbers {
    double ingest_rate = 0;         // f*
    double origin_rate = 0;         // what the origin gives it, after the plan's share
    double rate_without_cache = 0;  // predicted
    double rate = 0;                // predicted, with the plan carried out
    double marginal_per_gib = 0;    // origin bytes/s that the next GiB would save
    double threshold_per_gib = 0;   // what the next GiB must save to be granted where it is short

    bool operator==(const AllocationNumbers&) const = default;
};

struct JobAllocation {
    ObjectKey job;
    std::string pool;
    Bytes wanted{};   // over all its nodes
    Bytes granted{};  // over all its nodes; bytes shared with another job count for both
    AllocationReason reason = AllocationReason::kWaitingForPods;
    std::string message;  // one sentence for people
    // In the order of the demand's datasets: the most that their sidecars may believe to be
    // granted. More than the grant until they have confirmed a smaller one. An operator after us
    // relies on it where a sidecar is out of reach.
    std::vector<Bytes> datasets;
    Bytes borrowed{};    // of the granted bytes
    Bytes minimum{};     // asked for as a minimum, as far as the datasets have bytes
    Bytes guaranteed{};  // of the minimum, what nominal quotas and nodes cover
    Bytes target{};      // granted once others have given back what they must
    AllocationNumbers numbers{};

    bool operator==(const JobAllocation&) const = default;
};

// Bytes of its own namespace's datasets that a job uses; several jobs of the namespace on one node
// count even parts. Bytes of another namespace's dataset are charged to that namespace alone.
struct QuotaCharge {
    ObjectKey job;
    std::string pool;
    Bytes charged{};
    double marginal_per_gib = 0;

    bool operator==(const QuotaCharge&) const = default;
};

// A quota's account under the plan. used <= nominal + borrowed. In each pool the sum of borrowed,
// namespaces without a quota included, is the sum of lent and of what no quota names of the pool.
struct QuotaUse {
    std::string ns;
    std::string pool;
    Bytes used{};  // of its datasets: granted to the jobs that read them, whoever's, and idle
    Bytes borrowed{};
    Bytes lent{};

    bool operator==(const QuotaUse&) const = default;
};

// A dataset that must give bytes back on a node, and until when at the latest.
struct Reclaim {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};
    Bytes granted{};
    std::uint32_t grace_seconds = 0;
    std::string ns{};  // that the bytes are charged to

    bool operator==(const Reclaim&) const = default;
};

// Bytes of a dataset that no job uses, to be removed because jobs are short of their room on the
// node or in the namespace's quota. As many as it takes, the longest unused first.
struct Sweep {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};

    bool operator==(const Sweep&) const = default;
};

// Every list is sorted.
struct AllocationPlan {
    std::vector<Grant> grants;         // by node, dataset; one for each that a job uses
    std::vector<JobAllocation> jobs;   // by job
    std::vector<QuotaCharge> charges;  // by job
    std::map<std::string, Bytes> granted_in_pool;
    std::vector<QuotaUse> quotas;   // by namespace, pool
    std::vector<Reclaim> reclaims;  // by node, dataset
    std::vector<Sweep> sweeps;      // by node, dataset

    bool operator==(const AllocationPlan&) const = default;
};

}  // namespace stoker::control
