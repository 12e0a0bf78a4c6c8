#include "operator/core/lifecycle/lifecycle_edits.h"

#include <algorithm>

#include "common/base/saturating.h"

namespace stoker::control {

DeleteJob deletion_of(const Job& job) {
    return {job.meta.name, job.meta.uid, job.meta.resource_version};
}

void delete_unless_deleting(const Job& job, Lifecycle& lifecycle) {
    if (!job.meta.deleting_since) {
        lifecycle.actions.emplace_back(deletion_of(job));
    }
}

void wake_at(Lifecycle& lifecycle, WallTime due, WallTime now) {
    const Duration wait =
        std::clamp<Duration>(elapsed_between(now, due), Duration::zero(), std::chrono::hours{24});
    lifecycle.wake_after = std::min(lifecycle.wake_after.value_or(wait), wait);
}

void keep_time(bool has_attempt, WallTime now, Lifecycle& lifecycle) {
    const JobState state = lifecycle.state;
    const bool runs = has_attempt || state == JobState::kStarting || state == JobState::kRestarting;
    if (!runs || is_final(state) || is_suspended(state)) {
        note(stop(active_time_of(lifecycle.status), now), lifecycle.status);
    }
}

void tell_diagnosis(const TrainingJobView& view, Lifecycle& lifecycle) {
    const bool enters_queue = lifecycle.state == JobState::kQueued && !view.kueue.workload;
    if ((lifecycle.state != JobState::kStarting && !enters_queue) || view.diagnosis.words.empty()) {
        return;
    }
    lifecycle.message = view.diagnosis.words;
    lifecycle.blocked = true;
    if (view.diagnosis.is_invalid) {
        lifecycle.state = JobState::kInvalid;
    }
}

}  // namespace stoker::control
