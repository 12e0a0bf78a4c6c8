#include "operator/core/lifecycle/workload_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr Duration kLookAgain = std::chrono::seconds{15};

bool runs(const Pod& pod) {
    return pod.phase == PodPhase::kSucceeded || pod.trainer.exit_code == 0 ||
           (pod.phase == PodPhase::kRunning && pod.ready);
}

std::string name_of(const WorkloadRef& workload) {
    return fmt::format("{} {}", workload.kind, workload.name);
}

}  // namespace

WorkloadState judge_workload(const TrainingJobView& view) {
    const WorkloadRef& ref = *view.job.spec.workload_ref;
    if (const auto& end = view.workload.end) {
        const std::string outcome = end->succeeded ? "is complete" : "has failed";
        return {
            end->succeeded ? JobState::kComplete : JobState::kFailed,
            end->message.empty() ? fmt::format("{} {}.", name_of(ref), outcome)
                                 : fmt::format("{} {}: {}", name_of(ref), outcome, end->message),
            end->at,
            std::nullopt};
    }
    const bool lives =
        std::ranges::any_of(view.pods, [](const Pod& pod) { return !has_ended(pod); });
    if (!lives) {
        return {
            JobState::kWaiting,
            fmt::format("No pod of {} runs.", name_of(ref)),
            std::nullopt,
            kLookAgain};
    }
    const std::int64_t wanted = view.workload.pod_count.value_or(view.job.spec.trainer.node_count);
    const std::int64_t running = std::ranges::count_if(view.pods, runs);
    const bool all = running >= wanted;
    return {
        all ? JobState::kRunning : JobState::kStarting,
        fmt::format("{} of {} pods of {} run.", std::min(running, wanted), wanted, name_of(ref)),
        std::nullopt,
        kLookAgain};
}

Lifecycle describe_workload(const TrainingJobView& view, WallTime now) {
    Lifecycle result;
    result.status = view.job.status;
    result.status.attempt = 1;
    for (const JobState state : {JobState::kComplete, JobState::kFailed}) {
        const Condition* told =
            find_condition(view.job.status.conditions, std::string{to_string(state)});
        if (told != nullptr && told->status == ConditionStatus::kTrue) {
            result.state = state;
            result.message = told->message;
            result.failure = state == JobState::kFailed ? told->reason : "";
            return result;
        }
    }
    WorkloadState told = judge_workload(view);
    result.state = told.state;
    result.message = std::move(told.message);
    result.failure = told.state == JobState::kFailed ? "WorkloadFailed" : "";
    result.wake_after = told.wake_after;
    if (is_final(told.state)) {
        result.status.completion_time = told.ended_at.value_or(now);
    }
    if (!result.status.start_time && told.state != JobState::kWaiting) {
        result.status.start_time = now;
    }
    return result;
}

}  // namespace stoker::control
