#include "operator/core/status/judge_cache.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "common/base/saturating.h"

namespace stoker::control {

namespace {

// Sentences about nodes that keep less than their grant because a disk is full or failing.
std::string trouble_on_nodes(const Totals& sum) {
    std::string sentences;
    for (const auto& [uid, dataset] : sum.datasets) {
        if (const std::string told = tell_troubles(dataset); !told.empty()) {
            sentences += " " + told;
        }
    }
    return sentences;
}

Condition no_pods_in(const std::string& pool) {
    return unknown(
        "WaitingForPods", fmt::format("No pod of the job is on a node of pool {}.", pool));
}

// The job has no bytes because no pod is on a node of the pool.
Condition waits_for_pods(const TrainingJobView& view, JobState state) {
    const std::string word{to_string(state)};
    switch (state) {
        case JobState::kSuspended:
            return unknown(word, "The job is suspended; it gets cache bytes when it goes on.");
        case JobState::kQueued:
            return unknown(word, "The job waits in a queue; it gets cache bytes when it starts.");
        case JobState::kInvalid:
        case JobState::kNameTaken:
        case JobState::kWaiting:
            return unknown(word, "The job has not started; it gets cache bytes when it does.");
        case JobState::kRestarting:
            return unknown(word, "The next attempt gets cache bytes when it starts.");
        default:
            return no_pods_in(view.pool.name);
    }
}

}  // namespace

Condition silent() {
    return unknown("NodesSilent", "No sidecar of the job has reported for 60 seconds.");
}

bool is_silent(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now) {
    if (sum.fresh_reports > 0 || lifecycle.state != JobState::kRunning) {
        return false;
    }
    const std::optional<WallTime> told =
        view.job.status.cache ? view.job.status.cache->sampled_at : std::nullopt;
    const std::optional<WallTime> since = std::max({told, sum.newest, lifecycle.status.start_time});
    return !since || elapsed_between(*since, now.wall) > kReportAgeMax;
}

Condition judge_cache(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now) {
    if (view.pool.name.empty()) {
        return fails(view.pool.blocker.reason, view.pool.blocker.message);
    }
    if (is_silent(view, lifecycle, sum, now)) {
        return silent();
    }
    if (!view.allocation || view.allocation->reason == AllocationReason::kWaitingForPods) {
        return waits_for_pods(view, lifecycle.state);
    }
    const JobAllocation& allocation = *view.allocation;
    // While profiling, zero bytes means Unknown, not False.
    const ConditionStatus without = allocation.reason == AllocationReason::kProfiling
                                        ? ConditionStatus::kUnknown
                                        : ConditionStatus::kFalse;
    return condition_of(
        allocation.granted > Bytes::zero() ? ConditionStatus::kTrue : without,
        std::string{to_string(allocation.reason)},
        allocation.message + trouble_on_nodes(sum));
}

Condition judge_minimum(const JobAllocation& allocation) {
    if (allocation.reason == AllocationReason::kWaitingForPods) {
        return no_pods_in(allocation.pool);
    }
    if (allocation.guaranteed >= allocation.minimum) {
        return holds(
            "Guaranteed",
            fmt::format(
                "{} are guaranteed in pool {}.", to_string(allocation.minimum), allocation.pool));
    }
    return fails(
        "NotCovered",
        fmt::format(
            "{} of {} are guaranteed in pool {}: the nominal quota of the datasets' namespace, or "
            "the room on the job's nodes, covers no more. The rest is granted while nobody else "
            "needs it.",
            to_string(allocation.guaranteed),
            to_string(allocation.minimum),
            allocation.pool));
}

}  // namespace stoker::control
