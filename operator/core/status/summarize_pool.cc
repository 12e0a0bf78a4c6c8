#include "operator/core/status/summarize_pool.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/spec/validate.h"
#include "operator/core/status/name_some.h"
#include "operator/core/view/cluster_view.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

constexpr std::uint64_t kThousandths = 1000;

constexpr std::size_t kNodesNamed = 3;

// Nodes with the worst verdict, in their order; empty if every known verdict is good.
std::vector<NodeVerdict> worst_of(const std::vector<NodeVerdict>& verdicts) {
    std::vector<NodeVerdict> worst;
    for (const NodeVerdict& it : verdicts) {
        if (!worst.empty() && worst.front().fitness < it.fitness) {
            worst.clear();
        }
        if (it.fitness != NodeFitness::kReady &&
            (worst.empty() || worst.front().fitness == it.fitness)) {
            worst.push_back(it);
        }
    }
    return worst;
}

std::string name_nodes(
    const std::vector<NodeVerdict>& nodes, const std::set<std::string>& nodes_with_pod) {
    std::vector<std::string> names;
    for (const NodeVerdict& it : nodes) {
        names.push_back(fmt::format(
            "{} ({})", it.node, nodes_with_pod.contains(it.node) ? "its pod is silent" : "no pod"));
    }
    return name_some(std::move(names), kNodesNamed);
}

const char* advice(NodeFitness fitness) {
    switch (fitness) {
        case NodeFitness::kNotEmpty:
            return " Nothing there was touched. Choose an empty directory for "
                   "spec.volume.hostPath.path, or move the files away.";
        case NodeFitness::kOtherPool:
            return " Each CachePool needs a directory of its own.";
        case NodeFitness::kPathRefused:
            return " Choose a directory on the disk that is for the cache.";
        default:
            return "";
    }
}

// "Node n1: /mnt/nvme is not empty: found photos. ... The same on 2 more nodes."
std::string tell_worst(const CachePoolView& view, const std::vector<NodeVerdict>& worst) {
    const NodeFitness fitness = worst.front().fitness;
    if (fitness == NodeFitness::kProgramMissing) {
        return fmt::format(
            "No report from the node program on {}. Check the pods of its DaemonSet (label "
            "stoker.dev/component=node in the operator's namespace): one must run on every node of "
            "the pool.",
            name_nodes(worst, view.programs.nodes_with_pod));
    }
    const std::string& words = worst.front().message;
    const char* end = words.ends_with('.') ? "" : ".";
    const std::string more =
        worst.size() == 1 ? "" : fmt::format(" The same on {} more.", worst.size() - 1);
    return fmt::format(
        "Node {}: {}{}{}{}",
        worst.front().node,
        words.empty() ? "no directory of the pool's" : words,
        end,
        advice(fitness),
        more);
}

Condition judge_nodes_of(
    const CachePoolView& view,
    const CachePoolStatus& status,
    const std::vector<NodeVerdict>& verdicts) {
    const std::vector<NodeVerdict> worst = worst_of(verdicts);
    const bool trouble = !worst.empty() && worst.front().fitness >= NodeFitness::kProgramMissing;
    if (status.nodes_ready > 0) {
        std::string count =
            fmt::format("{} of {} nodes are ready.", status.nodes_ready, status.nodes_total);
        return holds("Ready", trouble ? count + " " + tell_worst(view, worst) : count);
    }
    if (trouble) {
        return fails(std::string{to_string(worst.front().fitness)}, tell_worst(view, worst));
    }
    if (worst.front().fitness == NodeFitness::kWaiting) {
        return unknown(
            std::string{to_string(NodeFitness::kWaiting)},
            "The node programs have not reported yet whether the pool's directory is ready.");
    }
    return fails("NoNodeReady", "No node of the pool is ready.");
}

Condition judge_pool(
    const CachePoolView& view,
    const CachePoolStatus& status,
    const std::vector<NodeVerdict>& verdicts) {
    if (const std::vector<FieldError> errors = validate(view.pool); !errors.empty()) {
        return fails("Invalid", to_string(errors));
    }
    if (view.pool.spec.stop_policy != StopPolicy::kNone) {
        return fails(
            "Stopped", fmt::format("stopPolicy is {}.", choice_text(view.pool.spec.stop_policy)));
    }
    if (status.nodes_total == 0) {
        return fails("NoNodes", "No node has the labels of nodeSelector.");
    }
    return judge_nodes_of(view, status, verdicts);
}

// The node program's measurement; nullptr if there is none.
const PoolState* find_measured(const CachePoolView& view, const std::string& node) {
    const PoolState* state = find_state(view.programs.reports, node, view.pool);
    return state != nullptr && state->verdict == PoolVerdict::kReady ? state : nullptr;
}

// Bytes measured by node programs; for other nodes, bytes reported by sidecars.
Bytes used_in(const CachePoolView& view) {
    Bytes used{};
    for (const Node& node : view.nodes) {
        if (const PoolState* state = find_measured(view, node.meta.name)) {
            for (const DirectoryUse& use : state->directories) {
                used += use.bytes;
            }
        }
    }
    for (const Holding& holding : view.holdings) {
        if (holding.pool == view.pool.meta.name && find_measured(view, holding.node) == nullptr) {
            used += holding.resident;
        }
    }
    return used;
}

std::optional<WallTime> newest_sample(const CachePoolView& view) {
    std::optional<WallTime> newest = view.sampled_at;
    for (const Node& node : view.nodes) {
        if (find_state(view.programs.reports, node.meta.name, view.pool) != nullptr) {
            newest = std::max(
                newest, std::optional(view.programs.reports.at(node.meta.name)->received_wall));
        }
    }
    return newest;
}

Condition judge_quota(const CacheQuotaView& view) {
    const CacheQuota& quota = view.quota;
    if (const std::vector<FieldError> errors = validate(quota); !errors.empty()) {
        return fails(
            "Invalid",
            to_string(errors) +
                "; until it is fixed, the namespace has nominalQuota, and neither "
                "borrows nor lends");
    }
    if (is_duplicate(quota, view.quotas)) {
        return fails(
            "Duplicate",
            fmt::format(
                "An older CacheQuota of the namespace is for pool {}; delete one of them.",
                quota.spec.pool_ref));
    }
    if (!view.pool_exists) {
        return fails(
            "PoolNotFound", fmt::format("CachePool {} does not exist.", quota.spec.pool_ref));
    }
    if (quota.spec.stop_policy != StopPolicy::kNone) {
        return fails(
            "Stopped", fmt::format("stopPolicy is {}.", choice_text(quota.spec.stop_policy)));
    }
    return holds("Active", "The quota is in force.");
}

// Whether the namespace's bytes on the nodes match the plan.
Condition judge_enforced(const CacheQuotaView& view) {
    for (const OverQuotaHolder& holder : view.late) {
        if (holder.reclaim.ns == view.quota.meta.ns &&
            holder.reclaim.pool == view.quota.spec.pool_ref) {
            return fails("ReclaimOverdue", say_late(holder));
        }
    }
    return holds("Enforced", "Every sidecar keeps what it is granted and no more.");
}

std::vector<QuotaJobStatus> charged_jobs(const CacheQuotaView& view) {
    std::vector<QuotaJobStatus> result;
    for (const QuotaCharge& charge : view.charges) {
        const bool ours =
            charge.job.ns == view.quota.meta.ns && charge.pool == view.quota.spec.pool_ref;
        if (ours && charge.charged > Bytes::zero()) {
            const auto marginal = view.marginals.find(charge.job);
            result.push_back(
                {charge.job.name,
                 count_of(charge.charged),
                 marginal == view.marginals.end() ? "" : marginal->second});
        }
    }
    std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
        return std::tie(b.allocated_bytes, a.name) < std::tie(a.allocated_bytes, b.name);
    });
    return result;
}

// Empty while no plan contains the quota.
QuotaUse use_of(const CacheQuotaView& view) {
    const auto found = std::find_if(view.uses.begin(), view.uses.end(), [&](const QuotaUse& use) {
        return use.ns == view.quota.meta.ns && use.pool == view.quota.spec.pool_ref;
    });
    return found == view.uses.end() ? QuotaUse{} : *found;
}

// Share in thousandths; 0 for a quota of 0 bytes that lends or borrows.
std::int64_t share_of(Bytes used, Bytes nominal) {
    if (nominal == Bytes::zero()) {
        return 0;
    }
    constexpr double kMax = std::numeric_limits<std::int32_t>::max();
    const double share = static_cast<double>(used.count()) / static_cast<double>(nominal.count());
    return static_cast<std::int64_t>(std::min(share * static_cast<double>(kThousandths), kMax));
}

}  // namespace

bool is_too_early(const CachePoolView& view, TimePoint now) {
    const Condition* told = find_condition(view.pool.status.conditions, "Ready");
    if (told == nullptr || told->observed_generation != view.pool.meta.generation) {
        return false;
    }
    const TimePoint since = view.programs.listening_since.value_or(now);
    const std::vector<NodeVerdict> verdicts =
        judge_nodes(view.pool, view.nodes, view.programs, now);
    return now - since <= kNodeSilenceMax &&
           std::ranges::count(verdicts, NodeFitness::kWaiting, &NodeVerdict::fitness) > 0;
}

CachePoolStatus summarize_cache_pool(const CachePoolView& view, const Moment& now) {
    CachePoolStatus status = view.pool.status;
    status.observed_generation = view.pool.meta.generation;
    const std::vector<NodeVerdict> verdicts =
        judge_nodes(view.pool, view.nodes, view.programs, now.steady);
    status.nodes_total = static_cast<std::int64_t>(verdicts.size());
    status.nodes_ready = std::ranges::count(verdicts, NodeFitness::kReady, &NodeVerdict::fitness);
    const Bytes capacity =
        view.pool.spec.capacity_per_node * static_cast<std::uint64_t>(status.nodes_ready);
    const Bytes used = used_in(view);
    status.capacity_bytes = count_of(capacity);
    status.granted_bytes = count_of(view.granted);
    status.used_bytes = count_of(used);
    if (const std::optional<WallTime> newest = newest_sample(view)) {
        status.sampled_at = std::chrono::floor<seconds>(*newest);
    }
    status.columns = {
        fmt::format("{}/{}", status.nodes_ready, status.nodes_total),
        to_string(used),
        to_string(view.granted)};
    set_condition(
        status.conditions, "Ready", judge_pool(view, status, verdicts), view.pool.meta, now);
    return status;
}

CacheQuotaStatus summarize_cache_quota(const CacheQuotaView& view, const Moment& now) {
    CacheQuotaStatus status = view.quota.status;
    status.observed_generation = view.quota.meta.generation;
    set_condition(status.conditions, "Active", judge_quota(view), view.quota.meta, now);
    set_condition(status.conditions, "Enforced", judge_enforced(view), view.quota.meta, now);
    const bool counts = !is_duplicate(view.quota, view.quotas);
    status.jobs = counts ? charged_jobs(view) : std::vector<QuotaJobStatus>{};
    status.jobs.resize(std::min(status.jobs.size(), kQuotaJobCountMax));
    const QuotaUse use = counts ? use_of(view) : QuotaUse{};
    status.used_bytes = count_of(use.used);
    status.borrowed_bytes = count_of(use.borrowed);
    status.lent_bytes = count_of(use.lent);
    status.weighted_share = share_of(use.used, view.quota.spec.nominal_quota);
    status.columns = {
        to_string(use.used),
        to_string(use.borrowed),
        to_string(use.lent),
        fmt::format("{}%", status.weighted_share / 10)};
    return status;
}

}  // namespace stoker::control
