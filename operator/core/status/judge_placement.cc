#include "operator/core/status/judge_placement.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operator/core/lifecycle/attempts.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/forecast.h"

namespace stoker::control {

namespace {

Condition in_force() {
    return holds("InForce", "Each node keeps the samples that its own ranks read most.");
}

Condition reads_differ(const std::string& dataset) {
    return fails(
        std::string{kReadsDiffer},
        fmt::format(
            "The program reads dataset {} in another order than spec.datasets[{}].clairvoyant "
            "says: check order, seed and dropLast, and that the program calls set_epoch(). Samples "
            "are placed by a hash until the next attempt.",
            dataset,
            dataset));
}

// Whether each rank has a pod on a node of the group.
bool is_complete(const TrainingJobView& view, const PeerGroup& group) {
    const auto placed = std::ranges::count_if(view.pods, [&](const Pod& pod) {
        return !has_ended(pod) &&
               std::ranges::binary_search(group.members, pod.node_name, {}, &PeerMember::node);
    });
    return placed >= view.job.spec.trainer.node_count;
}

Condition judge_dataset(const TrainingJobView& view, const ResolvedDataset& dataset) {
    const Blocker blocker = find_forecast_blocker(view.job, dataset);
    if (!blocker.empty()) {
        return fails(blocker.reason, blocker.message + " Placement Clairvoyant has no effect.");
    }
    const auto group = view.peers.find(dataset.uid);
    if (group == view.peers.end() || !is_complete(view, group->second)) {
        return unknown(
            "Waiting",
            fmt::format(
                "Samples of dataset {} are placed by a hash until the nodes of all {} pods share "
                "them.",
                dataset.name,
                view.job.spec.trainer.node_count));
    }
    const std::optional<KnownReads>& reads = group->second.reads;
    if (reads && reads->job_uid == view.job.meta.uid) {
        return in_force();
    }
    return fails(
        "OtherReader",
        fmt::format(
            "Samples of dataset {} are placed by a hash while another job, or another entry of "
            "this one, reads it, too.",
            dataset.name));
}

}  // namespace

std::optional<Condition> judge_placement(const TrainingJobView& view, std::int64_t attempt) {
    const std::vector<ResolvedDataset>& datasets = view.datasets.datasets;
    const bool is_asked = std::ranges::any_of(
        datasets, [](const ResolvedDataset& dataset) { return dataset.clairvoyant.has_value(); });
    if (!is_asked || view.pool.name.empty()) {
        return std::nullopt;
    }
    for (const SidecarReport& report : reports_of_attempt(view, attempt)) {
        const auto told = std::ranges::find_if(report.datasets, &DatasetReport::reads_differ);
        if (told != report.datasets.end()) {
            return reads_differ(told->name);
        }
    }
    if (view.job.status.attempt == attempt && has_read_otherwise(view.job)) {
        return *find_condition(view.job.status.conditions, kClairvoyantPlacement);
    }
    Condition worst = in_force();
    for (const ResolvedDataset& dataset : datasets) {
        if (!dataset.clairvoyant) {
            continue;
        }
        Condition next = judge_dataset(view, dataset);
        if (next.status == ConditionStatus::kFalse) {
            return next;
        }
        if (next.status == ConditionStatus::kUnknown) {
            worst = std::move(next);
        }
    }
    return worst;
}

}  // namespace stoker::control
