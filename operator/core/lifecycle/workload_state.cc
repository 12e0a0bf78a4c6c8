#include "operator/core/lifecycle/workload_state.h"

#include <algorithm>

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
            fmt::format("{} has no pod that runs.", name_of(ref)),
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

}  // namespace stoker::control
