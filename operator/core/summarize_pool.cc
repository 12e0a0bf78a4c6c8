#include "operator/core/summarize_pool.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "operator/core/cluster_view.h"
#include "operator/core/judgement.h"
#include "operator/core/tally.h"
#include "operator/core/validate.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

constexpr std::uint64_t kThousandths = 1000;

Judgement judge_pool(const CachePoolView& view, const CachePoolStatus& status) {
    if (const std::vector<FieldError> errors = validate(view.pool); !errors.empty()) {
        return holds_if(false, "Invalid", to_string(errors));
    }
    if (view.pool.spec.stop_policy != StopPolicy::kNone) {
        return holds_if(
            false,
            "Stopped",
            fmt::format("stopPolicy is {}.", choice_text(view.pool.spec.stop_policy)));
    }
    if (status.nodes_total == 0) {
        return holds_if(false, "NoNodes", "No node has the labels of nodeSelector.");
    }
    if (status.nodes_ready == 0) {
        return holds_if(false, "NoNodeReady", "No node of the pool is ready.");
    }
    return holds_if(
        true,
        "Ready",
        fmt::format("{} of {} nodes are ready.", status.nodes_ready, status.nodes_total));
}

Judgement judge_quota(const CacheQuotaView& view) {
    const CacheQuota& quota = view.quota;
    if (const std::vector<FieldError> errors = validate(quota); !errors.empty()) {
        return holds_if(
            false,
            "Invalid",
            to_string(errors) +
                "; until it is mended the namespace has nominalQuota, and neither "
                "borrows nor lends");
    }
    if (is_duplicate(quota, view.quotas)) {
        return holds_if(
            false,
            "Duplicate",
            fmt::format(
                "An older CacheQuota of the namespace is for pool {}; delete one of them.",
                quota.spec.pool_ref));
    }
    if (!view.pool_exists) {
        return holds_if(
            false,
            "PoolNotFound",
            fmt::format("CachePool {} does not exist.", quota.spec.pool_ref));
    }
    if (quota.spec.stop_policy != StopPolicy::kNone) {
        return holds_if(
            false,
            "Stopped",
            fmt::format("stopPolicy is {}.", choice_text(quota.spec.stop_policy)));
    }
    return holds_if(true, "Active", "The quota is in force.");
}

// Whether what the plan says of the namespace's bytes is so on the nodes.
Judgement judge_enforced(const CacheQuotaView& view) {
    for (const Giver& giver : view.late) {
        if (giver.pod.ns == view.quota.meta.ns && giver.reclaim.pool == view.quota.spec.pool_ref) {
            return holds_if(false, "ReclaimOverdue", say_late(giver));
        }
    }
    return holds_if(true, "Enforced", "Every sidecar keeps what it is granted and no more.");
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

// Nothing while no plan knows the quota.
QuotaUse use_of(const CacheQuotaView& view) {
    const auto found = std::find_if(view.uses.begin(), view.uses.end(), [&](const QuotaUse& use) {
        return use.ns == view.quota.meta.ns && use.pool == view.quota.spec.pool_ref;
    });
    return found == view.uses.end() ? QuotaUse{} : *found;
}

// In thousandths; of a quota of nothing that lends or borrows: 0.
std::int64_t share_of(Bytes used, Bytes nominal) {
    if (nominal == Bytes::zero()) {
        return 0;
    }
    constexpr double kMax = std::numeric_limits<std::int32_t>::max();
    const double share = static_cast<double>(used.count()) / static_cast<double>(nominal.count());
    return static_cast<std::int64_t>(std::min(share * static_cast<double>(kThousandths), kMax));
}

}  // namespace

CachePoolStatus summarize_cache_pool(const CachePoolView& view, const Moment& now) {
    CachePoolStatus status = view.pool.status;
    status.observed_generation = view.pool.meta.generation;
    status.nodes_total = 0;
    status.nodes_ready = 0;
    for (const Node& node : view.nodes) {
        if (matches(view.pool.spec.node_selector, node.meta.labels)) {
            ++status.nodes_total;
            status.nodes_ready += node.ready ? 1 : 0;
        }
    }
    const Bytes capacity =
        view.pool.spec.capacity_per_node * static_cast<std::uint64_t>(status.nodes_ready);
    Bytes used{};
    for (const Holding& holding : view.holdings) {
        used += holding.pool == view.pool.meta.name ? holding.resident : Bytes::zero();
    }
    status.capacity_bytes = count_of(capacity);
    status.granted_bytes = count_of(view.granted);
    status.used_bytes = count_of(used);
    if (view.sampled_at) {
        status.sampled_at = std::chrono::floor<seconds>(*view.sampled_at);
    }
    status.columns = {
        fmt::format("{}/{}", status.nodes_ready, status.nodes_total),
        to_string(used),
        to_string(view.granted)};
    set_condition(status.conditions, "Ready", judge_pool(view, status), view.pool.meta, now);
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
