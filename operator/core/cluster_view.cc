#include "operator/core/cluster_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "common/domain/segment_format.h"
#include "operator/core/tally.h"
#include "operator/core/validate.h"

namespace stoker::control {

namespace {

const JobUse* job_of(const std::vector<JobUse>& jobs, const AgentReport& report) {
    const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const JobUse& use) {
        return use.job.meta.uid == report.training_job_uid;
    });
    return found == jobs.end() ? nullptr : &*found;
}

using Place = std::tuple<std::string, std::string, std::string>;  // pool, node, uid

void add_remembered(
    const Dataset& dataset, const std::set<std::string>& nodes, std::map<Place, Bytes>& resident) {
    for (const DatasetPlacement& placement : dataset.status.placements) {
        if (nodes.contains(placement.node) && placement.bytes > 0) {
            // Not where a report has spoken already.
            resident.emplace(
                Place{placement.pool, placement.node, dataset.meta.uid},
                Bytes{static_cast<std::uint64_t>(placement.bytes)});
        }
    }
}

std::map<Place, Bytes> reported_bytes(const ClusterView& cluster, const Moment& now) {
    std::map<Place, Bytes> result;
    for (const AgentReport& report : cluster.reports) {
        const JobUse* use = job_of(cluster.jobs, report);
        if (use == nullptr || use->pool.name.empty() || !is_fresh(report, now)) {
            continue;
        }
        for (const DatasetReport& dataset : report.datasets) {
            if (dataset.leader) {
                Bytes& bytes = result[{use->pool.name, report.node, dataset.dataset_uid}];
                bytes = std::max(bytes, dataset.resident_bytes);
            }
        }
    }
    return result;
}

Demand demand_of(const JobUse& use, const Tally& sum) {
    const CacheSpec& cache = use.job.spec.cache;
    Demand result;
    result.job = use.job.meta.key();
    result.created_at = use.job.meta.created_at;
    result.pool = use.pool.name;
    result.mode = cache.mode;
    result.max_bytes = cache.max_bytes;
    result.min_bytes = cache.min_bytes.value_or(Bytes::zero());
    for (const ResolvedDataset& dataset : use.datasets.datasets) {
        DemandDataset wanted{dataset.name, dataset.uid, std::nullopt};
        if (dataset.total) {
            wanted.total = domain::records_bytes_max(*dataset.total, dataset.samples);
        }
        const auto told = sum.datasets.find(dataset.uid);
        if (told != sum.datasets.end() && told->second.state == ManifestState::kReady) {
            wanted.total = domain::records_bytes_max(told->second.total, told->second.samples);
        }
        result.datasets.push_back(std::move(wanted));
    }
    std::set<std::string> live;
    std::set<std::string> all;
    for (const Pod& pod : use.pods) {
        const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
        if (!pod.node_name.empty()) {
            all.insert(pod.node_name);
            if (!ended) {
                live.insert(pod.node_name);
            }
        }
    }
    // When the last pod has ended, its bytes stay as they are until the job itself is over.
    const std::set<std::string>& nodes = live.empty() ? all : live;
    result.nodes.assign(nodes.begin(), nodes.end());
    return result;
}

}  // namespace

bool JobUse::is_active() const {
    const std::vector<Condition>& conditions = job.status.conditions;
    return !pool.name.empty() && !job.spec.suspend && !job.meta.deleting_since &&
           datasets.obstacle.empty() && !is_true(conditions, "Complete") &&
           !is_true(conditions, "Failed");
}

bool matches(const TextMap& selector, const TextMap& labels) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const auto found = labels.find(wanted.first);
        return found != labels.end() && found->second == wanted.second;
    });
}

std::vector<PoolNode> pool_nodes(
    const std::vector<CachePool>& pools, const std::vector<Node>& nodes) {
    std::vector<PoolNode> result;
    for (const CachePool& pool : pools) {
        for (const Node& node : nodes) {
            if (!pool.meta.deleting_since && matches(pool.spec.node_selector, node.meta.labels)) {
                result.push_back({pool.meta.name, node.meta.name, pool.spec.capacity_per_node});
            }
        }
    }
    return result;
}

bool is_duplicate(const CacheQuota& quota, const std::vector<CacheQuota>& quotas) {
    return std::any_of(quotas.begin(), quotas.end(), [&](const CacheQuota& other) {
        return other.meta.ns == quota.meta.ns && other.spec.pool_ref == quota.spec.pool_ref &&
               !other.meta.deleting_since &&
               std::tie(other.meta.created_at, other.meta.name) <
                   std::tie(quota.meta.created_at, quota.meta.name);
    });
}

std::vector<QuotaView> quotas_in_force(const std::vector<CacheQuota>& quotas) {
    std::vector<QuotaView> result;
    for (const CacheQuota& quota : quotas) {
        if (!quota.meta.deleting_since && !is_duplicate(quota, quotas) && validate(quota).empty()) {
            result.push_back(
                {quota.meta.ns,
                 quota.spec.pool_ref,
                 quota.spec.nominal_quota,
                 quota.spec.stop_policy});
        }
    }
    return result;
}

std::vector<Holding> find_holdings(const ClusterView& cluster, const Moment& now) {
    std::set<std::string> nodes;
    for (const Node& node : cluster.nodes) {
        nodes.insert(node.meta.name);
    }
    std::map<Place, Bytes> resident = reported_bytes(cluster, now);
    for (const Dataset& dataset : cluster.datasets) {
        add_remembered(dataset, nodes, resident);
    }
    std::map<std::pair<std::string, std::string>, Bytes> granted;
    for (const AgentGrant& grant : cluster.last_grants) {
        granted[{grant.node, grant.dataset_uid}] = grant.resident_bytes;
    }
    std::vector<Holding> result;
    for (const auto& [place, bytes] : resident) {
        const auto& [pool, node, uid] = place;
        const auto grant = granted.find({node, uid});
        result.push_back({pool, node, uid, bytes, grant == granted.end() ? bytes : grant->second});
    }
    return result;
}

AllocationView view_allocation(const ClusterView& cluster, const Moment& now) {
    AllocationView result;
    result.nodes = pool_nodes(cluster.pools, cluster.nodes);
    for (const CachePool& pool : cluster.pools) {
        result.pools.push_back({pool.meta.name, pool.spec.stop_policy});
    }
    result.quotas = quotas_in_force(cluster.quotas);
    const Tally sum = tally(cluster.reports, now);
    for (const JobUse& use : cluster.jobs) {
        if (use.is_active()) {
            result.demands.push_back(demand_of(use, sum));
        }
    }
    result.holdings = find_holdings(cluster, now);
    result.valid_seconds = cluster.grant_seconds;
    return result;
}

}  // namespace stoker::control
