#include "operator/core/status/judge_placement.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operator/core/spec/make_condition.h"
#include "operator/core/view/forecast.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

Condition in_force() {
    return holds("InForce", "Each node was told to keep the samples that its own ranks read most.");
}

Condition waiting(const TrainingJobView& view, const std::string& dataset) {
    return unknown(
        "Waiting",
        fmt::format(
            "Samples of dataset {} are placed by a hash until the nodes of all {} pods share them.",
            dataset,
            view.job.spec.trainer.node_count));
}

Condition reads_differ(const std::string& dataset) {
    return fails(
        std::string{kReadsDiffer},
        fmt::format(
            "The program reads dataset {} in another order than spec.datasets[{}].clairvoyant "
            "says: check order, seed and dropLast, and that the program calls set_epoch(). Samples "
            "of all the job's datasets are placed by a hash until the job is suspended or starts "
            "its next attempt.",
            dataset,
            dataset));
}

Condition other_reader(const std::string& dataset) {
    return fails(
        "OtherReader",
        fmt::format(
            "Samples of dataset {} are placed by a hash while another job, or another entry of "
            "this one, reads it, too, and for 10 minutes after its reads were given up.",
            dataset));
}

Condition judge_dataset(const TrainingJobView& view, const ResolvedDataset& dataset) {
    const Blocker blocker = find_forecast_blocker(view.job, dataset);
    if (!blocker.empty()) {
        return fails(blocker.reason, blocker.message + " Placement Clairvoyant has no effect.");
    }
    const auto found = view.placings.find(dataset.uid);
    const Placing placing = found == view.placings.end() ? Placing{} : found->second;
    const bool is_ours = placing.job_uid == view.job.meta.uid;
    switch (placing.rule) {
        case Placing::Rule::kWaiting:
            return waiting(view, dataset.name);
        case Placing::Rule::kReads:
            return is_ours ? in_force() : other_reader(dataset.name);
        case Placing::Rule::kRefuted:
            return is_ours ? reads_differ(dataset.name) : other_reader(dataset.name);
        case Placing::Rule::kOneNode:
            return fails(
                "OneNode",
                "All pods of the job are on one node. Placement Clairvoyant has no effect.");
        case Placing::Rule::kOtherReader:
            break;
    }
    return other_reader(dataset.name);
}

// Whether a pod of the attempt has succeeded: the others will, or the attempt fails.
bool is_ending(const TrainingJobView& view, std::int64_t attempt) {
    const std::string job = job_name(view.job, attempt);
    return std::ranges::any_of(view.pods, [&](const Pod& pod) {
        return pod.phase == PodPhase::kSucceeded && job_name_of(pod) == job;
    });
}

}  // namespace

std::optional<Condition> judge_placement(const TrainingJobView& view, std::int64_t attempt) {
    const std::vector<ResolvedDataset>& datasets = view.datasets.datasets;
    const bool is_asked = std::ranges::any_of(
        datasets, [](const ResolvedDataset& dataset) { return dataset.clairvoyant.has_value(); });
    if (!is_asked || view.pool.name.empty()) {
        return std::nullopt;
    }
    const Condition* const last = find_condition(view.job.status.conditions, kClairvoyantPlacement);
    const bool is_of_attempt = last != nullptr && view.job.status.attempt == attempt;
    if (is_of_attempt && (has_read_otherwise(view.job) || is_ending(view, attempt))) {
        return *last;
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
