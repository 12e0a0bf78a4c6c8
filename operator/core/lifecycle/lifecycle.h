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

// Where a TrainingJob stands, and what must be done next. Pure.
namespace stoker::control {

// What to do, in this order. Each is safe to repeat.
struct CreateService {
    ServiceManifest service;

    bool operator==(const CreateService&) const = default;
};

// "Already exists" is success. Not an apply: a Job's template cannot change.
struct CreateJob {
    JobManifest job;

    bool operator==(const CreateJob&) const = default;
};

// In the foreground: the Job is gone when its pods are. Only with this uid and in this version: a
// Job that has succeeded since we looked stays, and the next look takes its success. "Not found" is
// success.
struct DeleteJob {
    std::string name;
    std::string uid;
    std::string resource_version;

    bool operator==(const DeleteJob&) const = default;
};

// Makes the Workload of a queued job. "Already exists" is success.
struct CreateWorkload {
    WorkloadManifest workload;

    bool operator==(const CreateWorkload&) const = default;
};

// Only with this uid: the quota goes to others. "Not found" is success.
struct DeleteWorkload {
    std::string name;
    std::string uid;

    bool operator==(const DeleteWorkload&) const = default;
};

// The end of an eviction: its status becomes this one, unless it has changed meanwhile.
struct ReleaseQuota {
    Workload workload;

    bool operator==(const ReleaseQuota&) const = default;
};

struct TellWorkload {
    Workload workload;
    Condition condition;

    bool operator==(const TellWorkload&) const = default;
};

// The TrainingJob itself, when its time after the end is over.
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
    std::int64_t attempt = 0;
    std::int64_t restarts = 0;
    std::optional<WallTime> start_time;
    std::optional<WallTime> completion_time;
    std::optional<WallTime> last_restart_time;
    ActiveTime active_time;
    bool blocked = false;  // the API server refuses its Job, or the Job's pods
    std::vector<Action> actions;
    std::optional<Duration> wake_after;  // look again then, even if nothing changes

    bool operator==(const Lifecycle&) const = default;
};

// The first of these that applies decides: an end that status already tells (it is final), an
// invalid spec (what only the API server refuses, too), a name that is taken, the deadline,
// success, failure, suspension or an eviction by Kueue, a lost node, an origin that changed,
// Kueue's queue, then starting what is missing.
//
// The status must be written before the actions are done: attempt and restarts live only there.
Lifecycle decide_lifecycle(const TrainingJobView& view, const Moment& now);

// Names of attempts end at "-a9999".
inline constexpr std::int64_t kAttemptMax = 9999;

}  // namespace stoker::control
