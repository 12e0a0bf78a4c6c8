#include "operator/core/plan_training_job.h"

#include <algorithm>

#include "operator/core/lifecycle/pin_hold.h"
#include "operator/core/lifecycle/pin_revisions.h"
#include "operator/core/status/summarize_training_job.h"

namespace stoker::control {

namespace {

bool is_worrying(JobState state) {
    return state == JobState::kInvalid || state == JobState::kNameTaken ||
           state == JobState::kWaiting || state == JobState::kRestarting ||
           state == JobState::kFailed;
}

// One Event per change of the job's state, per new reason of CacheAllocated, and per change of the
// origin.
std::vector<JobEvent> events_between(
    const TrainingJobStatus& before, const TrainingJobStatus& after, const Lifecycle& lifecycle) {
    std::vector<JobEvent> result;
    const Condition* state_before = find_condition(before.conditions, "Finished");
    const Condition* state_after = find_condition(after.conditions, "Finished");
    const bool is_news = state_before == nullptr || state_before->reason != state_after->reason ||
                         before.attempt != after.attempt ||
                         (lifecycle.blocked && state_before->message != state_after->message);
    if (is_news) {
        result.push_back(
            {is_worrying(lifecycle.state) || lifecycle.blocked,
             state_after->reason,
             state_after->message});
    }
    const Condition* cache_before = find_condition(before.conditions, "CacheAllocated");
    const Condition* cache_after = find_condition(after.conditions, "CacheAllocated");
    const bool is_first =
        cache_before == nullptr && cache_after->status == ConditionStatus::kUnknown;
    const bool is_told = cache_after->reason == state_after->reason;
    if (!is_first && !is_told &&
        (cache_before == nullptr || cache_before->reason != cache_after->reason)) {
        result.push_back({false, cache_after->reason, cache_after->message});
    }
    const Condition* origin_before = find_condition(before.conditions, "OriginUnchanged");
    const Condition* origin_after = find_condition(after.conditions, "OriginUnchanged");
    if (origin_after != nullptr && origin_after->status == ConditionStatus::kFalse &&
        (origin_before == nullptr || origin_before->message != origin_after->message)) {
        result.push_back({true, origin_after->reason, origin_after->message});
    }
    return result;
}

}  // namespace

TrainingJobPlan plan_training_job(const TrainingJobView& view, const Moment& now) {
    TrainingJobPlan result;
    if (view.job.meta.deleting_since) {
        result.status = view.job.status;
        return result;
    }
    Lifecycle lifecycle = decide_lifecycle(view, now);
    result.status = summarize_training_job(view, lifecycle, now);
    result.events = events_between(view.job.status, result.status, lifecycle);
    if (reads_now(lifecycle.state)) {
        result.pins = pins_of(view, result.status);
        result.missing_peers = find_missing_peers(view, result.status.attempt, now);
    }
    result.requeue_after = lifecycle.wake_after;
    if (lifecycle.state == JobState::kRunning) {
        // Decide again after a while: no event tells that a sidecar has stopped reporting.
        result.requeue_after =
            std::min(result.requeue_after.value_or(kReportAgeMax), kReportAgeMax);
    }
    result.actions = std::move(lifecycle.actions);
    return result;
}

}  // namespace stoker::control
