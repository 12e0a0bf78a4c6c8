#include "operator/core/view/stragglers.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "operator/core/view/guests.h"

namespace stoker::control {

namespace {

bool leads_at(const AgentReport& report, const Reclaim& reclaim) {
    return report.node == reclaim.node &&
           std::any_of(report.datasets.begin(), report.datasets.end(), [&](const auto& dataset) {
               return dataset.leader && dataset.dataset_uid == reclaim.dataset_uid;
           });
}

bool is_there(const Pod& pod, const Reclaim& reclaim) {
    return pod.node_name == reclaim.node && !has_ended(pod);
}

std::optional<Giver> find_giver(const ClusterView& cluster, const Reclaim& reclaim) {
    std::optional<std::pair<bool, Giver>> best;  // whether it leads
    for (const JobUse& use : cluster.jobs) {
        if (use.pool.name != reclaim.pool) {
            continue;
        }
        for (const ResolvedDataset& dataset : use.datasets.datasets) {
            for (const Pod& pod : use.pods) {
                if (dataset.uid != reclaim.dataset_uid || is_guest(use, dataset) ||
                    !is_there(pod, reclaim)) {
                    continue;
                }
                const bool leads = std::any_of(
                    cluster.reports.begin(), cluster.reports.end(), [&](const AgentReport& report) {
                        return report.namespace_name == pod.meta.ns &&
                               report.pod == pod.meta.name && leads_at(report, reclaim);
                    });
                Giver giver{reclaim, pod.meta.key(), use.job.meta.key(), dataset.name};
                if (!best || std::tie(leads, best->second.pod) > std::tie(best->first, giver.pod)) {
                    best = {leads, std::move(giver)};
                }
            }
        }
    }
    return best ? std::optional(std::move(best->second)) : std::nullopt;
}

}  // namespace

std::vector<Giver> find_givers(const ClusterView& cluster, const std::vector<Reclaim>& reclaims) {
    std::vector<Giver> result;
    for (const Reclaim& reclaim : reclaims) {
        if (std::optional<Giver> giver = find_giver(cluster, reclaim)) {
            result.push_back(*std::move(giver));
        }
    }
    return result;
}

std::string say_reclaimed(const Giver& giver) {
    const Reclaim& reclaim = giver.reclaim;
    return fmt::format(
        "{} of dataset {} go back on node {} within {} s; {} stay.",
        to_string(reclaim.resident - reclaim.granted),
        giver.dataset,
        reclaim.node,
        reclaim.grace_seconds,
        to_string(reclaim.granted));
}

std::string say_late(const Giver& giver) {
    const Reclaim& reclaim = giver.reclaim;
    return fmt::format(
        "Pod {} on node {} keeps {} of dataset {} and may keep {}; until it has given the rest "
        "back, namespace {} gets no more bytes.",
        giver.pod.name,
        reclaim.node,
        to_string(reclaim.resident),
        giver.dataset,
        to_string(reclaim.granted),
        reclaim.ns);
}

std::vector<HeldBack> hold_back(const std::vector<Giver>& late) {
    std::vector<HeldBack> result;
    for (const Giver& giver : late) {
        const bool known = std::any_of(result.begin(), result.end(), [&](const HeldBack& held) {
            return held.pool == giver.reclaim.pool && held.ns == giver.reclaim.ns;
        });
        if (!known) {
            result.push_back({giver.reclaim.pool, giver.reclaim.ns, say_late(giver)});
        }
    }
    return result;
}

}  // namespace stoker::control
