#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/shared_value.h"
#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/sidecar_report.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/profile/job_profile.h"
#include "operator/core/spec/moment.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/node_fitness.h"

// Builds the planner's input from objects and reports. Pure; the order of the lists does not
// matter.
namespace stoker::control {

// Nodes with pods of the list that have not ended.
std::set<std::string> live_nodes(const std::vector<Pod>& pods);

// A TrainingJob with the objects that its spec names. It shares them with the caches of the watches:
// a cluster may have tens of thousands of pods.
struct JobUse {
    SharedValue<TrainingJob> job;
    SharedValue<ResolvedDatasets> datasets;
    ResolvedPool pool;
    // The pods with the job's kJobLabel; for fillers: with the Dataset's kFillerLabel.
    std::vector<SharedValue<Pod>> pods{};
    // True: not a TrainingJob but the fillers of a Dataset in one pool
    // (operator/core/workload/build_filler.h), which have no demand and lead the node directories
    // that guests read.
    bool filler = false;
    // Nodes of fillers that DatasetWarmups fill, which have a demand without readers
    // (operator/core/view/warmups.h).
    std::set<std::string> filling{};
    std::set<std::string> filled{};  // subset of `filling` that no DatasetWarmup fills any more

    // Whether the job may hold grants: it has started, has a pool, and has not ended or been
    // suspended.
    [[nodiscard]] bool is_active() const;

    // Whether it has a demand: it is_active(), or fills nodes.
    [[nodiscard]] bool has_demand() const { return is_active() || !filling.empty(); }

    // Nodes with pods of the job that have not ended.
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
    std::map<ObjectKey, JobProfile> profiles;  // of the jobs that have one
    std::vector<HeldBack> held_back{};         // operator/core/view/over_quota_holders.h
    NodeProgramView programs{};
    std::vector<DatasetWarmup> warmups{};

    // The job's profile once it has a verdict; else nullptr.
    [[nodiscard]] const JobProfile* judged_profile(const ObjectKey& job) const;
};

// Whether a node belongs to a pool: it has every label of the selector.
bool matches(const TextMap& selector, const TextMap& labels);

std::vector<PoolNode> pool_nodes(
    const std::vector<CachePool>& pools, const std::vector<Node>& nodes);

// The nodes of pool_nodes() that get grants: either the node program's last report calls the pool's
// directory ready, or a pod of a job that uses the pool runs there, which requires the directory.
// The pod does not count if the node program refused the directory later. For kNodeSilenceMax after
// this operator starts to listen, a node without a report counts, too. So grants survive a stopped
// node program and a new operator, and nodes that cannot store bytes get none.
std::vector<PoolNode> planned_nodes(const ClusterView& cluster, TimePoint now);

// Whether another quota of the same namespace and pool is in force instead: the oldest one, by name
// if ages are equal.
bool is_duplicate(const CacheQuota& quota, const std::vector<CacheQuota>& quotas);

// Quotas in force: not being deleted, and the oldest of each namespace and pool. An invalid quota
// keeps only its nominal bytes.
std::vector<QuotaView> quotas_in_force(const std::vector<CacheQuota>& quotas);

// Input of plan_allocation() without the holdings, which come from GrantBook.
AllocationView view_allocation(const ClusterView& cluster, const Moment& now);

}  // namespace stoker::control
