#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/sidecar_report.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/profile/job_profile.h"
#include "operator/core/spec/moment.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/node_fitness.h"

// From objects and reports to what the planner of grants looks at. Pure; the order of the lists
// does not matter.
namespace stoker::control {

// A TrainingJob with what its spec names.
struct JobUse {
    TrainingJob job;
    ResolvedDatasets datasets;
    ResolvedPool pool;
    std::vector<Pod> pods;  // with its kJobLabel; a filler's with the Dataset's kFillerLabel
    // Not a TrainingJob but the fillers of a Dataset in one pool (operator/core/workload/build_filler.h):
    // it wants nothing itself, and leads for the guests.
    bool filler = false;

    // Whether it may hold grants: started, not ended, not suspended, with a pool.
    [[nodiscard]] bool is_active() const;

    // Nodes of its pods that have not ended.
    [[nodiscard]] std::set<std::string> live_nodes() const;
};

struct ClusterView {
    std::vector<CachePool> pools;
    std::vector<CacheQuota> quotas;
    std::vector<Node> nodes;
    std::vector<Dataset> datasets;
    std::vector<JobUse> jobs;
    std::vector<SidecarReport> reports;
    std::uint32_t grant_seconds = 60;
    std::map<ObjectKey, JobProfile> profiles;  // of the jobs of which something is known
    std::vector<HeldBack> held_back{};         // operator/core/view/over_quota_holders.h
    NodeProgramView programs{};

    // The job's profile once it has a verdict; else nullptr.
    [[nodiscard]] const JobProfile* judged_profile(const ObjectKey& job) const;
};

// Whether a node belongs to a pool: it has every label of the selector.
bool matches(const TextMap& selector, const TextMap& labels);

std::vector<PoolNode> pool_nodes(
    const std::vector<CachePool>& pools, const std::vector<Node>& nodes);

// The nodes of pool_nodes() that get grants: the node program called the pool's directory ready
// when it last spoke, or a pod of a job that uses the pool runs there, which it could not without
// the directory. The pod does not count where the program has refused the directory since. For
// kNodeSilenceMax after this operator began to listen, a node that has not spoken counts too. So
// neither a node program that is down nor a new operator takes a grant away, and nothing is granted
// where nothing can be kept.
std::vector<PoolNode> planned_nodes(const ClusterView& cluster, TimePoint now);

// Whether another quota of the same namespace and pool is in force instead: the oldest one is, by
// name where they are of one age.
bool is_duplicate(const CacheQuota& quota, const std::vector<CacheQuota>& quotas);

// The quotas in force: not being deleted, the oldest of each namespace and pool. One that is not
// valid holds with its nominal bytes alone.
std::vector<QuotaView> quotas_in_force(const std::vector<CacheQuota>& quotas);

// The input of plan_allocation() but for the holdings, which GrantBook knows.
AllocationView view_allocation(const ClusterView& cluster, const Moment& now);

}  // namespace stoker::control
