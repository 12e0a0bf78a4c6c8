#include "operator/core/lifecycle.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/attempts.h"
#include "operator/core/lifecycle_edits.h"
#include "operator/core/pin_revisions.h"
#include "operator/core/validate.h"
#include "operator/core/validate_host_paths.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

// The Job controller multiplies by 1e9 in 64 bits; the job's own deadline is kept by the operator.
constexpr std::int64_t kJobDeadlineMax = std::numeric_limits<std::int32_t>::max();

// What the rules below look at.
struct Facts {
    Facts(const TrainingJobView& looked_at, const Moment& moment)
        : view(looked_at),
          now(moment),
          attempts(find_attempts(looked_at)),
          active(observe_active_time(looked_at.job.status, attempts.current, moment.wall)) {}

    const TrainingJobView& view;
    const Moment& now;
    Attempts attempts;
    ActiveTime active;
};

using Verdict = std::optional<Lifecycle>;
using Rule = Verdict (*)(const Facts&);

const TrainingJobSpec& spec_of(const Facts& facts) {
    return facts.view.job.spec;
}

bool is_queued_kind(const Facts& facts) {
    return facts.view.job.meta.labels.contains(std::string{kQueueLabel});
}

// The lifecycle as status tells it, to be changed by a rule.
Lifecycle as_before(const Facts& facts, JobState state, std::string message) {
    const TrainingJobStatus& status = facts.view.job.status;
    Lifecycle result;
    result.state = state;
    result.message = std::move(message);
    result.attempt = facts.attempts.number;
    result.restarts = status.restarts;
    result.start_time = status.start_time;
    result.completion_time = status.completion_time;
    result.last_restart_time = status.last_restart_time;
    result.active_time = facts.active;
    if (const Job* current = facts.attempts.current; current != nullptr && !current->suspend) {
        result.start_time = result.start_time ? result.start_time : current->start_time;
    }
    return result;
}

// Waiting in the middle of a restart: what status says of its cause stands, else `message`.
Lifecycle still_restarting(const Facts& facts, std::string message) {
    const Condition* told = find_condition(facts.view.job.status.conditions, "Finished");
    if (told != nullptr && told->reason == to_string(JobState::kRestarting)) {
        message = told->message;
    }
    return as_before(facts, JobState::kRestarting, std::move(message));
}

std::optional<std::int64_t> time_limit(const Facts& facts) {
    return spec_of(facts).run_policy.active_deadline_seconds;
}

Verdict stay_finished(const Facts& facts) {
    const TrainingJobStatus& status = facts.view.job.status;
    const bool complete = is_true(status.conditions, "Complete");
    if (!complete && !is_true(status.conditions, "Failed")) {
        return std::nullopt;
    }
    const Condition* told = find_condition(status.conditions, complete ? "Complete" : "Failed");
    Lifecycle result =
        as_before(facts, complete ? JobState::kComplete : JobState::kFailed, told->message);
    result.failure = complete ? "" : told->reason;
    const Job* current = facts.attempts.current;
    if (current != nullptr && !current->end) {
        delete_unless_deleting(*current, result);  // stopped by the deadline
    }
    for (const Job* older : facts.attempts.older) {
        delete_unless_deleting(*older, result);
    }
    const std::optional<std::int64_t> ttl = spec_of(facts).run_policy.ttl_seconds_after_finished;
    if (ttl && status.completion_time) {
        const WallTime due = time_after(*status.completion_time, saturated_seconds(*ttl));
        if (due <= facts.now.wall) {
            result.actions.emplace_back(DeleteTrainingJob{facts.view.job.meta.uid});
        } else {
            wake_at(result, due, facts.now.wall);
        }
    }
    return result;
}

Verdict refuse_invalid(const Facts& facts) {
    std::vector<FieldError> errors = validate(facts.view.job);
    const bool starts = facts.attempts.current == nullptr && facts.attempts.older.empty();
    if (errors.empty() && starts) {
        errors = validate_host_paths(
            facts.view.job.spec.pod_template, facts.view.datasets.datasets, facts.view.pool_paths);
    }
    if (errors.empty()) {
        return std::nullopt;
    }
    return as_before(facts, JobState::kInvalid, to_string(errors));
}

Verdict respect_foreign_names(const Facts& facts) {
    const NameClash clash = find_name_clash(facts.view, facts.attempts);
    if (clash.object.empty()) {
        return std::nullopt;
    }
    return clash.leaves
               ? as_before(
                     facts, JobState::kWaiting, clash.object + " of an earlier job is leaving.")
               : as_before(
                     facts,
                     JobState::kNameTaken,
                     clash.object +
                         " exists and belongs to somebody else; delete it, or choose another "
                         "name.");
}

Lifecycle fail_now(const Facts& facts, std::string failure, std::string message) {
    Lifecycle result = as_before(facts, JobState::kFailed, std::move(message));
    result.failure = std::move(failure);
    result.completion_time = facts.now.wall;
    const Job* current = facts.attempts.current;
    if (current != nullptr && !current->end) {
        delete_unless_deleting(*current, result);
    }
    return result;
}

Lifecycle fail_for_deadline(const Facts& facts) {
    return fail_now(
        facts,
        "DeadlineExceeded",
        fmt::format(
            "The job was active for longer than activeDeadlineSeconds ({}).",
            time_limit(facts).value_or(0)));
}

Verdict keep_the_deadline(const Facts& facts) {
    const std::optional<WallTime> deadline = deadline_of(facts.active, time_limit(facts));
    const Job* current = facts.attempts.current;
    const bool succeeded = current != nullptr && current->end && current->end->succeeded;
    if (!deadline || *deadline > facts.now.wall || succeeded) {
        return std::nullopt;
    }
    return fail_for_deadline(facts);
}

Verdict take_success(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current == nullptr || !current->end || !current->end->succeeded) {
        return std::nullopt;
    }
    Lifecycle result = as_before(
        facts,
        JobState::kComplete,
        fmt::format(
            "{} succeeded in attempt {}.",
            spec_of(facts).trainer.node_count == 1 ? "The only rank" : "All ranks",
            facts.attempts.number));
    result.completion_time = current->end->at.value_or(facts.now.wall);
    return result;
}

// All ranks stop; the next attempt starts when they are gone.
Lifecycle restart(const Facts& facts, std::string message, bool counts) {
    Lifecycle result = as_before(facts, JobState::kRestarting, std::move(message));
    delete_unless_deleting(*facts.attempts.current, result);
    result.attempt = add_saturated(facts.attempts.number, 1);
    result.restarts = add_saturated(result.restarts, counts ? 1 : 0);
    result.last_restart_time = facts.now.wall;
    return result;
}

// The attempt failed: another one, while one is left.
Lifecycle answer(const Facts& facts, const std::string& failure, bool counts) {
    const std::string cause = fmt::format("Attempt {} failed: {}", facts.attempts.number, failure);
    if (facts.attempts.number >= kAttemptMax) {
        return fail_now(facts, "AttemptsExhausted", cause);
    }
    const std::int64_t limit = spec_of(facts).run_policy.backoff_limit;
    if (counts && facts.view.job.status.restarts >= limit) {
        return fail_now(
            facts,
            "BackoffLimitExceeded",
            fmt::format("{} No restart is left (backoffLimit {}).", cause, limit));
    }
    return restart(facts, cause + " All ranks start again.", counts);
}

Verdict answer_failure(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current == nullptr || !current->end) {
        return std::nullopt;
    }
    if (current->end->reason == "DeadlineExceeded") {
        return fail_for_deadline(facts);
    }
    const bool disrupted = was_disrupted(*current, facts.view.pods);
    return answer(facts, failure_of(*current, facts.view.pods), !disrupted);
}

// A rank lists another revision than the others read: it would train on other samples.
Verdict leave_changed_origin(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current == nullptr || current->end || current->meta.deleting_since) {
        return std::nullopt;
    }
    const auto change = find_origin_change(
        facts.view, reports_of_attempt(facts.view, facts.attempts.number), facts.now);
    return change ? Verdict{answer(facts, *change, true)} : std::nullopt;
}

Verdict leave_lost_nodes(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current == nullptr || current->meta.deleting_since) {
        return std::nullopt;
    }
    const std::vector<std::string> lost = lost_pods(facts.view, current->meta.name, facts.now.wall);
    if (lost.empty()) {
        return std::nullopt;
    }
    return restart(
        facts,
        fmt::format("Pod {} was lost with its node. All ranks start again.", lost.front()),
        false);
}

Verdict stand_still(const Facts& facts) {
    if (!spec_of(facts).suspend) {
        return std::nullopt;
    }
    Lifecycle result = as_before(facts, JobState::kSuspended, "spec.suspend is true.");
    const Job* current = facts.attempts.current;
    if (current == nullptr || current->meta.deleting_since) {
        return result;
    }
    if (is_queued_kind(facts)) {
        // Kueue would let an admitted Job go on; without the Job it lets the quota go.
        result.actions.emplace_back(deletion_of(*current));
    } else if (!current->suspend) {
        result.actions.emplace_back(SuspendJob{current->meta.name, true});
    }
    return result;
}

Verdict wait_for_older_attempts(const Facts& facts) {
    const Job* current = facts.attempts.current;
    Lifecycle result = still_restarting(facts, "The pods of the attempt before are being stopped.");
    for (const Job* older : facts.attempts.older) {
        delete_unless_deleting(*older, result);
    }
    const bool current_leaves = current != nullptr && current->meta.deleting_since;
    const bool current_is_blocked =
        current == nullptr && !older_attempts_are_gone(facts.view, facts.attempts, facts.now.wall);
    if (result.actions.empty() && !current_leaves && !current_is_blocked) {
        return std::nullopt;
    }
    result.wake_after = kLostNodeAfter;
    return result;
}

Verdict wait_for_what_is_missing(const Facts& facts) {
    const Job* current = facts.attempts.current;
    const Obstacle& dataset = facts.view.datasets.obstacle;
    const bool waits = !dataset.empty() || facts.view.pool.waits;
    // In Kueue's queue, and not to be admitted any more.
    const bool is_refused = current != nullptr && current->suspend && is_queued_kind(facts) &&
                            dataset.reason == kNotShared;
    if (!waits || (current != nullptr && !is_refused)) {
        return std::nullopt;
    }
    const Obstacle& missing = dataset.empty() ? facts.view.pool.obstacle : dataset;
    Lifecycle result = as_before(facts, JobState::kWaiting, missing.message);
    if (is_refused) {
        delete_unless_deleting(*current, result);
    }
    return result;
}

Verdict wait_before_restarting(const Facts& facts) {
    const TrainingJobStatus& status = facts.view.job.status;
    if (facts.attempts.current != nullptr || !status.last_restart_time) {
        return std::nullopt;
    }
    const WallTime due = time_after(*status.last_restart_time, restart_delay(status.restarts));
    if (due <= facts.now.wall) {
        return std::nullopt;
    }
    Lifecycle result = still_restarting(
        facts, fmt::format("Attempt {} starts at the end of a pause.", facts.attempts.number));
    wake_at(result, due, facts.now.wall);
    return result;
}

JobInput input_of(const Facts& facts, std::int64_t attempt) {
    const TrainingJobView& view = facts.view;
    JobInput input{view.job, view.datasets.datasets, view.pool, view.settings, attempt, {}, {}};
    input.preferred_nodes = preferred_nodes(view.datasets.datasets, view.pool.name, view.holdings);
    if (const std::optional<std::int64_t> limit = time_limit(facts)) {
        const std::int64_t used = total_seconds(facts.active, facts.now.wall);
        input.active_deadline_seconds =
            std::clamp<std::int64_t>(subtract_saturated(*limit, used), 1, kJobDeadlineMax);
    }
    return input;
}

Verdict start(const Facts& facts) {
    if (facts.attempts.current != nullptr) {
        return std::nullopt;
    }
    Lifecycle result = as_before(facts, JobState::kStarting, "The pods are being created.");
    result.attempt = std::max<std::int64_t>(facts.attempts.number, 1);
    if (!facts.view.service) {
        result.actions.emplace_back(CreateService{build_service(facts.view.job)});
    }
    result.actions.emplace_back(CreateJob{build_job(input_of(facts, result.attempt))});
    return result;
}

// A Job that we suspended goes on when its pods would still be the same, else the next attempt
// takes its place.
Verdict resume(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (!current->suspend || is_queued_kind(facts) || !facts.view.datasets.obstacle.empty()) {
        return std::nullopt;
    }
    const std::string& built_from =
        value_or_empty(current->meta.annotations, std::string{kDigestAnnotation});
    if (built_from == template_digest(input_of(facts, facts.attempts.number))) {
        Lifecycle result = as_before(facts, JobState::kStarting, "The job goes on.");
        result.actions.emplace_back(SuspendJob{current->meta.name, false});
        return result;
    }
    Lifecycle result =
        as_before(facts, JobState::kRestarting, "The job was changed while it was suspended.");
    result.actions.emplace_back(deletion_of(*current));
    result.attempt = add_saturated(facts.attempts.number, 1);
    return result;
}

// The spec lets it go on; resume() would have, but for this.
std::string why_still_suspended(const Facts& facts) {
    const Obstacle& obstacle = facts.view.datasets.obstacle;
    return obstacle.empty() ? "The Job is suspended." : obstacle.message;
}

Verdict watch(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current->suspend) {
        return is_queued_kind(facts)
                   ? as_before(facts, JobState::kQueued, "Kueue has not admitted the job yet.")
                   : as_before(facts, JobState::kSuspended, why_still_suspended(facts));
    }
    const std::int64_t wanted = spec_of(facts).trainer.node_count;
    const bool all = ranks_running(*current, facts.view.pods) >= wanted;
    Lifecycle result = as_before(
        facts,
        all ? JobState::kRunning : JobState::kStarting,
        tell_ranks(*current, facts.view.pods, wanted));
    if (!facts.view.service) {
        result.actions.emplace_back(CreateService{build_service(facts.view.job)});
    }
    if (const auto deadline = deadline_of(facts.active, time_limit(facts))) {
        wake_at(result, *deadline, facts.now.wall);
    }
    const std::vector<Pod>& pods = facts.view.pods;
    if (std::any_of(pods.begin(), pods.end(), [](const Pod& pod) {
            return pod.meta.deleting_since.has_value();
        })) {
        wake_at(result, facts.now.wall + kLostNodeAfter, facts.now.wall);
    }
    return result;
}

constexpr std::array<Rule, 15> kRules = {
    stay_finished,
    refuse_invalid,
    respect_foreign_names,
    keep_the_deadline,
    take_success,
    answer_failure,
    stand_still,
    leave_lost_nodes,
    leave_changed_origin,
    wait_for_older_attempts,
    wait_for_what_is_missing,
    wait_before_restarting,
    start,
    resume,
    watch,
};

// Between attempts the time runs on; where a job waits or has ended, it stops.
void keep_time(const Facts& facts, Lifecycle& lifecycle) {
    const JobState state = lifecycle.state;
    const bool runs = facts.attempts.current != nullptr || state == JobState::kStarting ||
                      state == JobState::kRestarting;
    if (!runs || is_final(state)) {
        lifecycle.active_time = stop(lifecycle.active_time, facts.now.wall);
    }
}

}  // namespace

Lifecycle decide_lifecycle(const TrainingJobView& view, const Moment& now) {
    const Facts facts{view, now};
    for (const Rule rule : kRules) {
        if (Verdict verdict = rule(facts)) {
            tell_trouble(view, *verdict);
            keep_time(facts, *verdict);
            return *std::move(verdict);
        }
    }
    return as_before(facts, JobState::kWaiting, "");  // not reached: watch() always speaks
}

}  // namespace stoker::control
