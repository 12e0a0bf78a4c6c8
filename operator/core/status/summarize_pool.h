#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/node.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/node_fitness.h"
#include "operator/core/view/over_quota_holders.h"

namespace stoker::control {

struct CachePoolView {
    CachePool pool;
    std::vector<Node> nodes;             // all of the cluster
    std::vector<Holding> holdings;       // of all pools
    Bytes granted{};                     // promised to the datasets that jobs use in this pool
    std::optional<WallTime> sampled_at;  // of the newest report of a sidecar
    NodeProgramView programs;
};

// A new leader has not heard of all nodes for a few seconds. What the leader before it has written
// about this generation stays meanwhile. Pure.
bool is_too_early(const CachePoolView& view, TimePoint now);

// The status of a CachePool as it should be now. A node is ready when it is in Kubernetes and its
// node program said so within kNodeSilenceMax. Used bytes are the blocks that the node programs
// measured; on a node that none has measured yet, what its sidecars say. Pure.
CachePoolStatus summarize_cache_pool(const CachePoolView& view, const Moment& now);

struct CacheQuotaView {
    CacheQuota quota;
    std::vector<CacheQuota> quotas;  // of the namespace
    bool pool_exists = false;
    std::vector<QuotaCharge> charges;   // of the last plan
    std::vector<QuotaUse> uses;         // of the last plan
    std::vector<OverQuotaHolder> late;  // who does not give back what they must, of any namespace
    std::map<ObjectKey, std::string> marginals;  // of jobs: seconds of an epoch for the next GiB
};

// The status of a CacheQuota as it should be now. Pure.
CacheQuotaStatus summarize_cache_quota(const CacheQuotaView& view, const Moment& now);

}  // namespace stoker::control
