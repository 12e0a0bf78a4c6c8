#include "operator/core/view/over_quota_holders.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "operator/core/view/guests.h"

namespace stoker::control {

namespace {

bool leads_at(const SidecarReport& report, const Reclaim& reclaim) {
    return report.node == reclaim.node &&
           std::any_of(report.datasets.begin(), report.datasets.end(), [&](const auto& dataset) {
               return dataset.leader && dataset.dataset_uid == reclaim.dataset_uid;
           });
}

bool is_there(const Pod& pod, const Reclaim& reclaim) {
    return pod.node_name == reclaim.node && !has_ended(pod);
}

std::optional<OverQuotaHolder> find_holder(const ClusterView& cluster, const Reclaim& reclaim) {
    std::optional<std::pair<bool, OverQuotaHolder>> best;  // first: whether it leads
    for (const JobUse& use : cluster.jobs) {
        if (use.pool.name != reclaim.pool) {
            continue;
        }
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            for (const Pod& pod : use.pods) {
                if (dataset.uid != reclaim.dataset_uid || is_guest(use.job, dataset) ||
                    !is_there(pod, reclaim)) {
                    continue;
                }
                const bool leads = std::any_of(
                    cluster.reports.begin(),
                    cluster.reports.end(),
                    [&](const SidecarReport& report) {
                        return report.namespace_name == pod.meta.ns &&
                               report.pod == pod.meta.name && leads_at(report, reclaim);
                    });
                OverQuotaHolder holder{reclaim, pod.meta.key(), use.job->meta.key(), dataset.name};
                if (!best ||
                    std::tie(leads, best->second.pod) > std::tie(best->first, holder.pod)) {
                    best = {leads, std::move(holder)};
                }
            }
        }
    }
    return best ? std::optional(std::move(best->second)) : std::nullopt;
}

}  // namespace

std::vector<OverQuotaHolder> find_over_quota_holders(
    const ClusterView& cluster, const std::vector<Reclaim>& reclaims) {
    std::vector<OverQuotaHolder> result;
    for (const Reclaim& reclaim : reclaims) {
        if (std::optional<OverQuotaHolder> holder = find_holder(cluster, reclaim)) {
            result.push_back(*std::move(holder));
        }
    }
    return result;
}

std::string say_reclaimed(const OverQuotaHolder& holder) {
    const Reclaim& reclaim = holder.reclaim;
    return fmt::format(
        "{} of dataset {} go back on node {} within {} s; {} stay.",
        to_string(reclaim.resident - reclaim.granted),
        holder.dataset,
        reclaim.node,
        reclaim.grace_seconds,
        to_string(reclaim.granted));
}

std::string say_late(const OverQuotaHolder& holder) {
    const Reclaim& reclaim = holder.reclaim;
    return fmt::format(
        "Pod {} on node {} keeps {} of dataset {} and may keep {}; until it has given the rest "
        "back, namespace {} gets no more bytes.",
        holder.pod.name,
        reclaim.node,
        to_string(reclaim.resident),
        holder.dataset,
        to_string(reclaim.granted),
        reclaim.ns);
}

std::vector<HeldBack> hold_back(const std::vector<OverQuotaHolder>& late) {
    std::vector<HeldBack> result;
    for (const OverQuotaHolder& holder : late) {
        const bool known = std::any_of(result.begin(), result.end(), [&](const HeldBack& held) {
            return held.pool == holder.reclaim.pool && held.ns == holder.reclaim.ns;
        });
        if (!known) {
            result.push_back({holder.reclaim.pool, holder.reclaim.ns, say_late(holder)});
        }
    }
    return result;
}

}  // namespace stoker::control
