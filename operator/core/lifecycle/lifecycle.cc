#include "operator/core/lifecycle/lifecycle.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/lifecycle/attempts.h"
#include "operator/core/lifecycle/kueue_gate.h"
#include "operator/core/lifecycle/lifecycle_edits.h"
#include "operator/core/lifecycle/pin_revisions.h"
#include "operator/core/lifecycle/workload_state.h"
#include "operator/core/spec/validate.h"
#include "operator/core/spec/validate_host_paths.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

// Input of the rules below.
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

// The present status; a rule then changes it.
Lifecycle as_before(const Facts& facts, JobState state, std::string message) {
    Lifecycle result;
    result.state = state;
    result.message = std::move(message);
    result.status = facts.view.job.status;
    result.status.attempt = facts.attempts.number;
    note(facts.active, result.status);
    if (const Job* current = facts.attempts.current;
        current != nullptr && !result.status.start_time) {
        result.status.start_time = current->start_time;
    }
    return result;
}

// Waits in the middle of a restart: keeps the cause from the status, else uses `message`.
Lifecycle still_restarting(const Facts& facts, std::string message) {
    const Condition* told = find_condition(facts.view.job.status.conditions, "Finished");
    if (told != nullptr && told->reason == to_string(JobState::kRestarting)) {
        message = told->message;
    }
    return as_before(facts, JobState::kRestarting, std::move(message));
}

void delete_older(const Facts& facts, Lifecycle& result) {
    for (const Job* older : facts.attempts.older) {
        delete_unless_deleting(*older, result);
    }
}

// Deletes the present Job if it has not ended; returns whether there is such a Job.
bool stop_current(const Facts& facts, Lifecycle& result) {
    const Job* current = facts.attempts.current;
    const bool runs = current != nullptr && !current->end;
    if (runs) {
        delete_unless_deleting(*current, result);
    }
    return runs;
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
    stop_current(facts, result);
    delete_older(facts, result);
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

// Refuses the job: no new pods start. Pods that the user suspended or that Kueue evicted still
// stop: a refused spec must not keep resources that were taken back.
Lifecycle refuse(const Facts& facts, JobState state, std::string message) {
    Lifecycle result = as_before(facts, state, std::move(message));
    if (!spec_of(facts).suspend && may_have_pods(facts.view)) {
        return result;
    }
    if (stop_current(facts, result)) {
        result.wake_after = kLostNodeAfter;
    }
    delete_older(facts, result);
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
    return refuse(facts, JobState::kInvalid, to_string(errors));
}

Verdict respect_foreign_names(const Facts& facts) {
    const NameClash clash = find_name_clash(facts.view, facts.attempts);
    if (clash.object.empty()) {
        return std::nullopt;
    }
    return clash.leaves
               ? refuse(facts, JobState::kWaiting, clash.object + " of an earlier job is ending.")
               : refuse(
                     facts,
                     JobState::kNameTaken,
                     clash.object +
                         " exists and belongs to somebody else; delete it, or choose another "
                         "name.");
}

Lifecycle fail_now(const Facts& facts, std::string failure, std::string message) {
    Lifecycle result = as_before(facts, JobState::kFailed, std::move(message));
    result.failure = std::move(failure);
    result.status.completion_time = facts.now.wall;
    stop_current(facts, result);
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
    result.status.completion_time = current->end->at.value_or(facts.now.wall);
    return result;
}

// Stops all ranks; the next attempt starts when their pods are gone.
Lifecycle restart(const Facts& facts, std::string message, bool counts) {
    Lifecycle result = as_before(facts, JobState::kRestarting, std::move(message));
    delete_unless_deleting(*facts.attempts.current, result);
    result.status.attempt = add_saturated(facts.attempts.number, 1);
    result.status.restarts = add_saturated(result.status.restarts, counts ? 1 : 0);
    result.status.last_restart_time = facts.now.wall;
    return result;
}

// Handles a failed attempt: starts another one while the limit allows.
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
    // Pods of a Job that is being deleted or is suspended end because of that, not by failure.
    if (current == nullptr || !current->end || current->meta.deleting_since || current->suspend) {
        return std::nullopt;
    }
    if (current->end->reason == "DeadlineExceeded") {
        return fail_for_deadline(facts);
    }
    const bool disrupted = was_disrupted(*current, facts.view.pods);
    return answer(facts, failure_of(*current, facts.view.pods), !disrupted);
}

// Restarts if a rank lists another revision than the others: it would train on other samples.
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
    if (current == nullptr) {
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

// The user suspends the job, or Kueue evicts it: the pods stop, and their exit codes are not
// failures. Earlier failures count. The same attempt continues later with a new Job.
Verdict stand_still(const Facts& facts) {
    const Job* current = facts.attempts.current;
    const bool suspended = spec_of(facts).suspend;
    if (!suspended && (current == nullptr || may_have_pods(facts.view))) {
        return std::nullopt;
    }
    Lifecycle result = suspended
                           ? as_before(facts, JobState::kSuspended, "spec.suspend is true.")
                           : as_before(facts, JobState::kQueued, why_not_admitted(facts.view));
    if (current != nullptr) {
        delete_unless_deleting(*current, result);
        result.wake_after = kLostNodeAfter;
    }
    delete_older(facts, result);
    return result;
}

// Another client has suspended the Job, so its pods stop; or the user suspended, changed and resumed
// the job while the operator was away. If every new Job is changed, one is made per 30 s.
Verdict replace_changed(const Facts& facts) {
    const Job* current = facts.attempts.current;
    if (current == nullptr || current->meta.deleting_since) {
        return std::nullopt;
    }
    std::string change = change_of(*current, spec_of(facts).trainer.node_count);
    if (change.empty()) {
        return std::nullopt;
    }
    Lifecycle result = as_before(
        facts,
        current->suspend ? JobState::kSuspended : JobState::kRestarting,
        std::move(change) + "; a new one takes its place.");
    const WallTime due = time_after(current->meta.created_at, seconds{30});
    if (due <= facts.now.wall) {
        result.actions.emplace_back(deletion_of(*current));
    } else {
        wake_at(result, due, facts.now.wall);
    }
    return result;
}

Verdict wait_for_older_attempts(const Facts& facts) {
    const Job* current = facts.attempts.current;
    Lifecycle result = still_restarting(facts, "The attempt's present pods are being stopped.");
    delete_older(facts, result);
    const bool current_leaves = current != nullptr && current->meta.deleting_since;
    const bool current_is_blocked =
        current == nullptr && !pods_are_gone(facts.view, facts.attempts, facts.now.wall);
    if (result.actions.empty() && !current_leaves && !current_is_blocked) {
        return std::nullopt;
    }
    result.wake_after = kLostNodeAfter;
    return result;
}

Verdict wait_for_what_is_missing(const Facts& facts) {
    const Blocker& dataset = facts.view.datasets.blocker;
    const bool waits = !dataset.empty() || facts.view.pool.waits;
    if (!waits || facts.attempts.current != nullptr) {
        return std::nullopt;
    }
    const Blocker& missing = dataset.empty() ? facts.view.pool.blocker : dataset;
    return as_before(facts, JobState::kWaiting, missing.message);
}

Verdict wait_before_restarting(const Facts& facts) {
    const TrainingJobStatus& status = facts.view.job.status;
    if (facts.attempts.current != nullptr || !status.last_restart_time) {
        return std::nullopt;
    }
    // A time in the future comes from a clock that was ahead: the pause begins now.
    const WallTime restarted = std::min(*status.last_restart_time, facts.now.wall);
    const WallTime due = time_after(restarted, restart_delay(status.restarts));
    if (due <= facts.now.wall) {
        return std::nullopt;
    }
    Lifecycle result = still_restarting(
        facts, fmt::format("Attempt {} starts at the end of a pause.", facts.attempts.number));
    result.status.last_restart_time = restarted;
    wake_at(result, due, facts.now.wall);
    return result;
}

// Input for the manifests of the present or next attempt.
JobInput input_of(const Facts& facts) {
    const TrainingJobView& view = facts.view;
    const auto attempt = std::max<std::int64_t>(facts.attempts.number, 1);
    JobInput input{view.job, view.datasets.datasets, view.pool, view.settings, attempt, {}, {}};
    input.holdings = view.holdings;
    input.placement = placement_of(view.kueue);
    input.active_deadline_seconds = seconds_left(facts.active, time_limit(facts), facts.now.wall);
    return input;
}

Verdict wait_for_kueue(const Facts& facts) {
    if (facts.attempts.current != nullptr) {
        return std::nullopt;
    }
    std::optional<QueueWait> wait = wait_in_queue(facts.view, input_of(facts));
    if (!wait) {
        return std::nullopt;
    }
    Lifecycle result = as_before(facts, JobState::kQueued, std::move(wait->message));
    result.actions = std::move(wait->actions);
    result.wake_after = wait->wake_after;
    return result;
}

Verdict start(const Facts& facts) {
    if (facts.attempts.current != nullptr) {
        return std::nullopt;
    }
    Lifecycle result = as_before(facts, JobState::kStarting, "The pods are being created.");
    const JobInput input = input_of(facts);
    result.status.attempt = input.attempt;
    if (!facts.view.service) {
        result.actions.emplace_back(CreateService{build_service(facts.view.job)});
    }
    result.actions.emplace_back(CreateJob{build_job(input)});
    return result;
}

Verdict watch(const Facts& facts) {
    const Job* current = facts.attempts.current;
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

constexpr std::array<Rule, 16> kRules = {
    stay_finished,
    refuse_invalid,
    respect_foreign_names,
    keep_the_deadline,
    take_success,
    answer_failure,
    stand_still,
    leave_lost_nodes,
    leave_changed_origin,
    replace_changed,
    wait_for_older_attempts,
    wait_for_what_is_missing,
    wait_for_kueue,
    wait_before_restarting,
    start,
    watch,
};

}  // namespace

Lifecycle decide_lifecycle(const TrainingJobView& view, const Moment& now) {
    if (view.job.spec.workload_ref) {
        return describe_workload(view, now.wall);
    }
    const Facts facts{view, now};
    for (const Rule rule : kRules) {
        if (Verdict verdict = rule(facts)) {
            tell_diagnosis(view, *verdict);
            keep_time(facts.attempts.current != nullptr, now.wall, *verdict);
            const bool pods_left = !pods_are_gone(view, facts.attempts, now.wall);
            if (auto action = settle_workload(view, *verdict, pods_left, now.wall)) {
                verdict->actions.push_back(*std::move(action));
            }
            return *std::move(verdict);
        }
    }
    return as_before(facts, JobState::kWaiting, "");  // not reached: watch() always speaks
}

}  // namespace stoker::control
