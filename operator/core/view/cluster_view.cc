#include "operator/core/view/cluster_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "common/domain/segment_format.h"
#include "operator/core/spec/contract_values.h"
#include "operator/core/spec/validate.h"
#include "operator/core/view/measured_demand.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

// Share of a job's epochs that read everything under contract Importance: the first warmupEpochs
// and every reuseFactor-th. If the number of epochs is not known: the limit for very many.
double full_epochs(const JobDataset& dataset, std::int64_t epochs) {
    const double reuse = std::max(number_of(dataset, "reuseFactor"), 1.0);
    if (epochs <= 0) {
        return 1 / reuse;
    }
    const auto all = static_cast<double>(epochs);
    const double warmup = std::clamp(number_of(dataset, "warmupEpochs"), 0.0, all);
    return (warmup + std::ceil(all / reuse) - std::ceil(warmup / reuse)) / all;
}

bool measures_importance(const TrainingJob& job, const std::string& dataset) {
    return std::ranges::any_of(job.spec.datasets, [&](const JobDataset& candidate) {
        return candidate.name == dataset && (candidate.contract == Contract::kImportance ||
                                             candidate.contract == Contract::kReplicate);
    });
}

// Contract Importance with family Iowa has no closed form of the curve: until sidecars report a
// measured curve, such jobs count as exact.
AccessPattern pattern_of(const TrainingJob& job, const std::string& dataset) {
    AccessPattern result;
    for (const JobDataset& candidate : job.spec.datasets) {
        if (candidate.name != dataset) {
            continue;
        }
        if (candidate.contract == Contract::kWindowed) {
            result.kind = AccessKind::kWindowed;
        } else if (is_icache(candidate)) {
            result.kind = AccessKind::kImportance;
            result.beta = number_of(candidate, "beta");
            result.full_epochs = full_epochs(candidate, job.spec.trainer.epochs);
        } else if (candidate.contract == Contract::kReplicate) {
            result.kind = AccessKind::kReplicate;
            result.replication = number_of(candidate, "replication");
            result.bias = number_of(candidate, "bias");
        }
    }
    return result;
}

// Uses a measured curve, if sidecars report one, for jobs that measure importance.
AccessPattern measured_pattern(
    const ReportIndex& reports,
    const JobUse& use,
    const ResolvedDataset& dataset,
    const Moment& now) {
    AccessPattern result = pattern_of(use.job, dataset.name);
    if (measures_importance(use.job, dataset.name)) {
        result.sketch = measured_sketch(use, dataset.uid, reports, now);
    }
    if (!result.sketch.empty()) {
        result.kind = AccessKind::kMeasured;
    }
    return result;
}

template <class Pods, class Counts>
std::set<std::string> nodes_of(const Pods& pods, Counts counts) {
    std::set<std::string> nodes;
    for (const Pod& pod : pods) {
        if (!pod.node_name.empty() && counts(pod)) {
            nodes.insert(pod.node_name);
        }
    }
    return nodes;
}

// nullopt until the profile has a verdict: the planner then assumes a typical job.
std::optional<JobRates> rates_of(const ClusterView& cluster, const ObjectKey& job) {
    const JobProfile* profile = cluster.judged_profile(job);
    if (profile == nullptr) {
        return std::nullopt;
    }
    return JobRates{
        profile->ingest_rate,
        profile->origin_rate,
        profile->confidence,
        profile->verdict == ProfileVerdict::kComputeBound};
}

double mean_sample(const DatasetTotals& told) {
    const auto samples = static_cast<double>(std::max<std::uint64_t>(told.samples, 1));
    return static_cast<double>(told.total.count()) / samples;
}

// After the last pod has ended, the job's bytes stay until the job itself ends.
std::set<std::string> wanted_nodes(const JobUse& use) {
    std::set<std::string> nodes = use.live_nodes();
    if (use.filler) {
        std::erase_if(nodes, [&](const std::string& node) { return !use.filling.contains(node); });
    } else if (nodes.empty()) {
        nodes = nodes_of(use.pods, [](const Pod&) { return true; });
    }
    return nodes;
}

Demand demand_of(
    const ClusterView& cluster,
    const ReportIndex& reports,
    const JobUse& use,
    const Totals& sum,
    const Moment& now) {
    const CacheSpec& cache = use.job->spec.cache;
    Demand result;
    result.job = use.job->meta.key();
    result.created_at = use.job->meta.created_at;
    result.pool = use.pool.name;
    result.mode = cache.mode;
    result.max_bytes = cache.max_bytes;
    result.min_bytes = cache.min_bytes.value_or(Bytes::zero());
    result.weight = static_cast<double>(cache.weight);
    result.fill = use.filler;
    result.rates = rates_of(cluster, result.job);
    result.last_epoch_progress = last_epoch_progress(use, reports, now);
    for (const ResolvedDataset& dataset : use.datasets->datasets) {
        DemandDataset wanted{dataset.name, dataset.uid, std::nullopt};
        wanted.ns = dataset.ns;
        wanted.access = measured_pattern(reports, use, dataset, now);
        if (dataset.total) {
            wanted.total = domain::records_bytes_max(*dataset.total, dataset.samples);
        }
        const auto told = sum.datasets.find(dataset.uid);
        if (told != sum.datasets.end() && told->second.state == ManifestState::kReady) {
            wanted.total = domain::records_bytes_max(told->second.total, told->second.samples);
            wanted.sample_bytes = mean_sample(told->second);
        }
        result.datasets.push_back(std::move(wanted));
    }
    const std::set<std::string> nodes = wanted_nodes(use);
    result.nodes.assign(nodes.begin(), nodes.end());
    std::ranges::set_intersection(nodes, use.filled, std::back_inserter(result.filled));
    return result;
}

}  // namespace

bool JobUse::is_active() const {
    const std::vector<Condition>& conditions = job->status.conditions;
    return !filler && !pool.name.empty() && !job->spec.suspend && !job->meta.deleting_since &&
           (datasets->blocker.empty() || datasets->goes_on) && !is_true(conditions, "Complete") &&
           !is_true(conditions, "Failed");
}

std::set<std::string> JobUse::live_nodes() const {
    return nodes_of(pods, [](const Pod& pod) { return !has_ended(pod); });
}

std::set<std::string> live_nodes(const std::vector<Pod>& pods) {
    return nodes_of(pods, [](const Pod& pod) { return !has_ended(pod); });
}

const JobProfile* ClusterView::judged_profile(const ObjectKey& job) const {
    const auto found = profiles.find(job);
    return found == profiles.end() || found->second.verdict == ProfileVerdict::kUnknown
               ? nullptr
               : &found->second;
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

namespace {

// Whether the pod's sidecar has started, which shows that its volumes are mounted.
bool has_begun(const Pod& pod) {
    return !has_ended(pod) && (pod.phase == PodPhase::kRunning || pod.sidecar.started);
}

bool is_planned(PoolVerdict verdict, bool has_pod) {
    switch (verdict) {
        case PoolVerdict::kReady:
            return true;
        case PoolVerdict::kUnknown:
        case PoolVerdict::kFailed:  // the sidecar continues and tests itself whether it can write
            return has_pod;
        default:
            return false;
    }
}

}  // namespace

std::vector<PoolNode> planned_nodes(const ClusterView& cluster, TimePoint now) {
    std::set<std::pair<std::string, std::string>> begun;
    for (const JobUse& use : cluster.jobs) {
        for (const std::string& node : nodes_of(use.pods, has_begun)) {
            begun.emplace(use.pool.name, node);
        }
    }
    const NodeReports& reports = cluster.programs.reports;
    const bool early = now - cluster.programs.listening_since.value_or(now) <= kNodeSilenceMax;
    std::vector<PoolNode> result;
    for (const CachePool& pool : cluster.pools) {
        for (PoolNode& place : pool_nodes({pool}, cluster.nodes)) {
            const PoolState* state = find_state(reports, place.node, pool);
            const PoolVerdict verdict = state == nullptr ? PoolVerdict::kUnknown : state->verdict;
            if ((early && !reports.contains(place.node)) ||
                is_planned(verdict, begun.contains({place.pool, place.node}))) {
                result.push_back(std::move(place));
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

namespace {

// The CRDs have validated the number.
double number_of(const std::string& text, double fallback) {
    double number = fallback;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc{} ? number : fallback;
}

// An omitted limit means no limit, as in Kueue.
QuotaView view_of(const CacheQuota& quota) {
    const CacheQuotaSpec& spec = quota.spec;
    QuotaView result{quota.meta.ns, spec.pool_ref, spec.nominal_quota, spec.stop_policy};
    result.borrowing = spec.borrowing_limit.value_or(Bytes::unlimited());
    result.lending = spec.lending_limit.value_or(Bytes::unlimited());
    if (spec.fair_sharing) {
        result.weight = number_of(spec.fair_sharing->weight, 1);
    }
    if (spec.reclaim) {
        result.reclaim = spec.reclaim->policy;
    }
    if (spec.reclaim && spec.reclaim->grace_period_seconds) {
        constexpr std::int64_t kGraceMax = 86'400;
        result.grace_seconds = static_cast<std::uint32_t>(
            std::clamp<std::int64_t>(*spec.reclaim->grace_period_seconds, 0, kGraceMax));
    }
    return result;
}

DefaultQuota default_quota_of(const CachePool& pool) {
    const DefaultQuotaSpec& spec = pool.spec.default_quota;
    return {
        spec.nominal_quota,
        spec.borrowing_limit.value_or(Bytes::unlimited()),
        spec.lending_limit.value_or(Bytes::unlimited())};
}

}  // namespace

std::vector<QuotaView> quotas_in_force(const std::vector<CacheQuota>& quotas) {
    std::vector<QuotaView> result;
    for (const CacheQuota& quota : quotas) {
        if (quota.meta.deleting_since || is_duplicate(quota, quotas)) {
            continue;
        }
        result.push_back(view_of(quota));
        // An invalid quota must not lift the namespace's limits.
        if (!validate(quota).empty()) {
            result.back().borrowing = Bytes::zero();
            result.back().lending = Bytes::zero();
        }
    }
    return result;
}

AllocationView view_allocation(const ClusterView& cluster, const Moment& now) {
    AllocationView result;
    result.nodes = planned_nodes(cluster, now.steady);
    for (const CachePool& pool : cluster.pools) {
        const Bytes bandwidth = pool.spec.origin_bandwidth.value_or(Bytes::zero());
        result.pools.push_back(
            {pool.meta.name,
             pool.spec.stop_policy,
             pool.spec.allocation,
             static_cast<double>(bandwidth.count()),
             number_of(pool.spec.price_per_gib, 0),
             number_of(pool.spec.price_per_thousand_requests, 0) / 1000,
             default_quota_of(pool)});
    }
    result.quotas = quotas_in_force(cluster.quotas);
    const Totals sum = total_of(cluster.reports, now);
    const ReportIndex reports{cluster.reports};
    for (const JobUse& use : cluster.jobs) {
        if (use.has_demand()) {
            result.demands.push_back(demand_of(cluster, reports, use, sum, now));
        }
    }
    result.held_back = cluster.held_back;
    result.valid_seconds = cluster.grant_seconds;
    result.step = mib(64);
    return result;
}

}  // namespace stoker::control
