#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/agent_report.h"
#include "operator/api/choices.h"
#include "operator/api/meta.h"

// Who may keep how many bytes on which node: the whole cluster's cache in one pure decision.
namespace stoker::control {

// A node of a pool. A node may be in several pools, with a volume in each.
struct PoolNode {
    std::string pool;
    std::string node;
    Bytes capacity{};

    bool operator==(const PoolNode&) const = default;
};

struct PoolStop {
    std::string pool;
    StopPolicy policy = StopPolicy::kNone;

    bool operator==(const PoolStop&) const = default;
};

// The quota of a namespace in a pool; at most one for each pair. A pair without one is limited by
// the pool alone.
struct QuotaView {
    std::string ns;
    std::string pool;
    Bytes nominal{};
    StopPolicy stop = StopPolicy::kNone;

    bool operator==(const QuotaView&) const = default;
};

struct DemandDataset {
    std::string name;            // under spec.datasets
    std::string uid;             // names the node directory; never the same in two namespaces
    std::optional<Bytes> total;  // none until the origin is listed

    bool operator==(const DemandDataset&) const = default;
};

// What one running job asks for.
struct Demand {
    ObjectKey job;
    WallTime created_at{};
    std::string pool;
    CacheMode mode = CacheMode::kAuto;  // kAuto or kFixed
    std::optional<Bytes> max_bytes;     // over all nodes
    Bytes min_bytes{};                  // over all nodes
    std::vector<DemandDataset> datasets;
    std::vector<std::string> nodes;  // where its pods are; each once

    bool operator==(const Demand&) const = default;
};

// Bytes on a node: of a dataset that a job uses, or of one that nobody uses now but that still
// takes its place.
struct Holding {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    Bytes resident{};
    Bytes granted{};  // the last grant, for StopPolicy::kHold

    bool operator==(const Holding&) const = default;
};

struct AllocationView {
    std::vector<PoolNode> nodes;
    std::vector<PoolStop> pools;
    std::vector<QuotaView> quotas;
    std::vector<Demand> demands;
    std::vector<Holding> holdings;
    std::uint32_t valid_seconds = 60;
};

// One word why a job has the bytes that it has; the reason of its condition CacheAllocated. The
// allocator of today uses those that it can justify; the others belong to the marginal-benefit one.
enum class AllocationReason : std::uint8_t {
    kGranted,
    kBorrowed,
    kComputeBound,
    kQuotaExhausted,
    kLowerMarginalBenefit,
    kPoolFull,
    kReclaimed,
    kProfiling,       // the size of a dataset is not known yet
    kWaitingForPods,  // no pod is on a node of the pool yet
    kStopped,         // stopPolicy of the pool or of the quota
};

std::string_view to_string(AllocationReason reason);

struct JobAllocation {
    ObjectKey job;
    std::string pool;
    Bytes wanted{};   // over all its nodes
    Bytes granted{};  // over all its nodes; bytes shared with another job count for both
    AllocationReason reason = AllocationReason::kWaitingForPods;
    std::string message;          // one sentence for people
    std::vector<Bytes> datasets;  // granted, in the order of the demand's datasets

    bool operator==(const JobAllocation&) const = default;
};

// Bytes charged to a job: those it shares are divided evenly between its users.
struct QuotaCharge {
    ObjectKey job;
    std::string pool;
    Bytes charged{};

    bool operator==(const QuotaCharge&) const = default;
};

struct AllocationPlan {
    std::vector<AgentGrant> grants;    // sorted by node, dataset; one for each that a job uses
    std::vector<JobAllocation> jobs;   // sorted by job
    std::vector<QuotaCharge> charges;  // sorted by job
    std::map<std::string, Bytes> granted_in_pool;

    bool operator==(const AllocationPlan&) const = default;
};

// Gives each job what it asks for: in mode Auto its datasets, at most max_bytes; in mode Fixed
// max_bytes. First every job, oldest first, gets its minimum, then what it wants. Nobody gets more
// than the quota of its namespace, no node more than its capacity less what idle datasets hold
// there. A job limited by the quota gets it in equal parts on its nodes. Shrink first: bytes that
// another dataset must give back are granted only when they are gone from the node, so that at no
// moment more is on the node than fits. The order of the inputs does not matter; a plan that was
// carried out is a fixpoint. O(D·N·M) in demands, nodes and datasets of a demand.
AllocationPlan plan_grants(const AllocationView& view);

}  // namespace stoker::control
