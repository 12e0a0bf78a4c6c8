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
    Bytes granted{};                     // total granted to datasets that jobs use in this pool
    std::optional<WallTime> sampled_at;  // time of the newest sidecar report
    NodeProgramView programs;
};

// Whether this operator leads for so short a time that reports of some nodes may be missing: then
// the earlier operator's status of this generation stays. Pure.
bool is_too_early(const CachePoolView& view, TimePoint now);

// Computes the present status of a CachePool. A node is ready if it is ready in Kubernetes and its
// node program reported so within kNodeSilenceMax. Used bytes are blocks measured by the node
// programs; on a node without a measurement, bytes reported by its sidecars. Pure.
CachePoolStatus summarize_cache_pool(const CachePoolView& view, const Moment& now);

struct CacheQuotaView {
    CacheQuota quota;
    std::vector<CacheQuota> quotas;  // of the namespace
    bool pool_exists = false;
    std::vector<QuotaCharge> charges;            // of the last plan
    std::vector<QuotaUse> uses;                  // of the last plan
    std::vector<OverQuotaHolder> late;           // holders of overdue bytes, in any namespace
    std::map<ObjectKey, std::string> marginals;  // by job: seconds of an epoch for the next GiB
};

// Computes the present status of a CacheQuota. Pure.
CacheQuotaStatus summarize_cache_quota(const CacheQuotaView& view, const Moment& now);

}  // namespace stoker::control
