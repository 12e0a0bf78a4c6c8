#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/api/job_manifest.h"
#include "operator/api/workload.h"
#include "operator/core/lifecycle/active_time.h"
#include "operator/core/spec/job_state.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

// State of a TrainingJob and its next actions. Pure.
namespace stoker::control {

// Actions, done in this order. Each is safe to repeat.
struct CreateService {
    ServiceManifest service;

    bool operator==(const CreateService&) const = default;
};

// "Already exists" is success. Not an apply: a Job's template cannot change.
struct CreateJob {
    JobManifest job;

    bool operator==(const CreateJob&) const = default;
};

// Foreground deletion: the Job is gone when its pods are. The precondition is this uid and version,
// so a Job that succeeded meanwhile stays, and the next decision sees its success. "Not found" is
// success.
struct DeleteJob {
    std::string name;
    std::string uid;
    std::string resource_version;

    bool operator==(const DeleteJob&) const = default;
};

// Creates the Workload of a queued job. "Already exists" is success.
struct CreateWorkload {
    WorkloadManifest workload;

    bool operator==(const CreateWorkload&) const = default;
};

// Releases the quota; the precondition is this uid. "Not found" is success.
struct DeleteWorkload {
    std::string name;
    std::string uid;

    bool operator==(const DeleteWorkload&) const = default;
};

// Ends an eviction: replaces the Workload's status unless it has changed meanwhile.
struct ReleaseQuota {
    Workload workload;

    bool operator==(const ReleaseQuota&) const = default;
};

struct TellWorkload {
    Workload workload;
    Condition condition;

    bool operator==(const TellWorkload&) const = default;
};

// Deletes the TrainingJob itself when ttlSecondsAfterFinished is over.
struct DeleteTrainingJob {
    std::string uid;

    bool operator==(const DeleteTrainingJob&) const = default;
};

using Action = std::variant<
    CreateService,
    CreateJob,
    DeleteJob,
    CreateWorkload,
    DeleteWorkload,
    ReleaseQuota,
    TellWorkload,
    DeleteTrainingJob>;

struct Lifecycle {
    JobState state = JobState::kWaiting;
    std::string
        failure;  // of kFailed: "BackoffLimitExceeded", "DeadlineExceeded", "AttemptsExhausted"
    std::string message;  // one sentence for people
    // The next status, as far as the lifecycle decides it: attempt, restarts, times. The rest is the
    // present status.
    TrainingJobStatus status;
    bool blocked = false;  // the API server refuses the attempt's Job or its pods
    std::vector<Action> actions;
    std::optional<Duration> wake_after;  // decides again then, even if nothing changes

    bool operator==(const Lifecycle&) const = default;
};

// The first rule that applies decides: a final status, an invalid spec (also one that only the API
// server refuses), a name that is taken, the deadline, success, failure, suspension or an eviction
// by Kueue, a lost node, a changed origin, Kueue's queue, then starting missing objects.
//
// With a workloadRef no rule counts: describe_workload() decides.
//
// The status must be written before the actions are done: only it records attempt and restarts.
Lifecycle decide_lifecycle(const TrainingJobView& view, const Moment& now);

// Limit on attempts: their names end at "-a9999".
inline constexpr std::int64_t kAttemptMax = 9999;

}  // namespace stoker::control
