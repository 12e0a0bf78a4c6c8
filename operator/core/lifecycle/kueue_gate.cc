#include "operator/core/lifecycle/kueue_gate.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/workload/build_workload.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

// Polling interval: no event reports a new Kueue, flavor or class.
constexpr Duration kLookAgainAfter = seconds{30};

bool is_true(const Workload& workload, std::string_view type) {
    return is_true(workload.conditions, type);
}

// The Workload's condition of that type with the given answer.
Condition condition_now(
    const Workload& workload, std::string_view type, Condition answer, WallTime now) {
    answer.type = type;
    answer.observed_generation = workload.meta.generation;
    answer.last_transition = std::chrono::floor<seconds>(now);
    return answer;
}

// Sets Admitted to false, as Kueue's workload.SyncAdmittedCondition() does for a Workload without a
// quota reservation. If it has checks, none is ready: Kueue resets them all when it evicts.
void end_admission(Workload& workload, WallTime now) {
    if (!is_true(workload, "Admitted")) {
        return;
    }
    const WallTime since = find_condition(workload.conditions, "Admitted")->last_transition;
    const auto held = std::chrono::floor<seconds>(elapsed_between(since, now)).count();
    workload.past_execution_seconds =
        add_saturated(workload.past_execution_seconds.value_or(0), std::max<std::int64_t>(held, 0));
    Condition none = workload.has_checks
                         ? fails(
                               "NoReservationUnsatisfiedChecks",
                               "The workload has no reservation and not all checks ready")
                         : fails("NoReservation", "The workload has no reservation");
    set_condition(workload.conditions, condition_now(workload, "Admitted", std::move(none), now));
}

// Ends an eviction, as step 6 of ReconcileGenericJob(): only preempted Workloads queue again at
// once, others wait until the evicting component requeues them.
ReleaseQuota release(Workload workload, WallTime now) {
    const Condition evicted = *find_condition(workload.conditions, "Evicted");
    const Condition again =
        holds_if(evicted.reason == "Preempted", evicted.reason, evicted.message);
    set_condition(workload.conditions, condition_now(workload, "Requeued", again, now));
    const Condition pending = fails("Pending", evicted.message);
    set_condition(workload.conditions, condition_now(workload, "QuotaReserved", pending, now));
    workload.admission = Json{};
    workload.flavors.clear();
    end_admission(workload, now);
    return {std::move(workload)};
}

// Whether a job in this state keeps its place in the queue, or its reservation.
bool keeps_place(JobState state) {
    return state == JobState::kQueued || state == JobState::kStarting ||
           state == JobState::kRunning || state == JobState::kRestarting || is_final(state);
}

std::string missing_flavor(const KueueView& kueue) {
    for (const std::string& name : kueue.workload->flavors) {
        if (std::ranges::none_of(
                kueue.flavors, [&](const ResourceFlavor& flavor) { return flavor.name == name; })) {
            return name;
        }
    }
    return {};
}

DeleteWorkload deletion_of(const Workload& workload) {
    return {workload.meta.name, workload.meta.uid};
}

QueueWait enter_queue(const TrainingJobView& view, const JobInput& input) {
    if (view.kueue.workload) {
        return {
            fmt::format("Workload {} belongs to somebody else.", view.kueue.workload->meta.name),
            {},
            kLookAgainAfter};
    }
    if (!view.kueue.trouble.empty()) {
        return {view.kueue.trouble, {}, kLookAgainAfter};
    }
    return {
        fmt::format(
            "The job enters queue {}.",
            value_or_empty(view.job.meta.labels, std::string{kQueueLabel})),
        {CreateWorkload{build_workload(input, view.kueue.priority)}}};
}

}  // namespace

const Workload* own_workload(const TrainingJobView& view) {
    const std::optional<Workload>& workload = view.kueue.workload;
    return workload && owns(view.job.meta, workload->meta) ? &*workload : nullptr;
}

bool may_have_pods(const TrainingJobView& view) {
    if (!is_queued(view.job) || !view.kueue.installed) {
        return true;
    }
    const Workload* workload = own_workload(view);
    return workload != nullptr && !workload->meta.deleting_since &&
           is_true(*workload, "Admitted") && !is_true(*workload, "Evicted") &&
           !is_true(*workload, "Finished");
}

std::string why_not_admitted(const TrainingJobView& view) {
    const Workload* workload = own_workload(view);
    if (workload == nullptr) {
        return "The job has no place in Kueue's queue.";
    }
    const Condition* evicted = find_condition(workload->conditions, "Evicted");
    if (evicted != nullptr && evicted->status == ConditionStatus::kTrue) {
        return fmt::format("Kueue has evicted the job ({}): {}", evicted->reason, evicted->message);
    }
    const Condition* reserved = find_condition(workload->conditions, "QuotaReserved");
    if (reserved != nullptr && reserved->status == ConditionStatus::kTrue) {
        return "Kueue has reserved quota for the job; its admission checks are not ready yet.";
    }
    return reserved == nullptr || reserved->message.empty()
               ? "Kueue has not admitted the job yet."
               : fmt::format("Kueue has not admitted the job yet: {}", reserved->message);
}

PodPlacement placement_of(const KueueView& kueue) {
    PodPlacement result;
    if (!kueue.workload) {
        return result;
    }
    for (const ResourceFlavor& flavor : kueue.flavors) {
        result.node_selector.insert(flavor.node_labels.begin(), flavor.node_labels.end());
        result.tolerations.insert(
            result.tolerations.end(), flavor.tolerations.begin(), flavor.tolerations.end());
    }
    PodPlacement more = kueue.workload->check_placement;
    result.labels = std::move(more.labels);
    result.annotations = std::move(more.annotations);
    result.node_selector.merge(more.node_selector);
    result.tolerations.insert(
        result.tolerations.end(), more.tolerations.begin(), more.tolerations.end());
    return result;
}

std::optional<QueueWait> wait_in_queue(const TrainingJobView& view, const JobInput& input) {
    if (!is_queued(view.job)) {
        return std::nullopt;
    }
    if (!view.kueue.installed) {
        return QueueWait{
            "Kueue's Workloads cannot be listed: it is not installed, or the operator may not read "
            "them.",
            {},
            kLookAgainAfter};
    }
    const Workload* workload = own_workload(view);
    if (workload == nullptr) {
        return enter_queue(view, input);
    }
    if (workload->meta.deleting_since) {
        return QueueWait{"The job's previous Workload is being deleted."};
    }
    const bool gives_up = is_true(*workload, "Evicted") && is_true(*workload, "QuotaReserved");
    if (!gives_up && (is_true(*workload, "Finished") ||
                      value_or_empty(workload->meta.annotations, std::string{kDigestAnnotation}) !=
                          workload_digest(input))) {
        return QueueWait{"The job has changed, so it queues again.", {deletion_of(*workload)}};
    }
    if (!may_have_pods(view)) {
        return QueueWait{why_not_admitted(view)};
    }
    if (const std::string flavor = missing_flavor(view.kueue); !flavor.empty()) {
        return QueueWait{
            view.kueue.trouble.empty() ? fmt::format("ResourceFlavor {} does not exist.", flavor)
                                       : view.kueue.trouble,
            {},
            kLookAgainAfter};
    }
    return std::nullopt;
}

std::optional<Action> settle_workload(
    const TrainingJobView& view, const Lifecycle& lifecycle, bool pods_left, WallTime now) {
    const Workload* workload = own_workload(view);
    if (workload == nullptr || workload->meta.deleting_since || is_true(*workload, "Finished")) {
        return std::nullopt;
    }
    if (!is_queued(view.job)) {
        return deletion_of(*workload);
    }
    const bool reserved = is_true(*workload, "QuotaReserved");
    const bool ready = is_true(*workload, "PodsReady");
    if (ready != (reserved && (ready || lifecycle.state == JobState::kRunning))) {
        const Condition answer =
            ready
                ? fails("PodsReady", "Not all pods are ready or succeeded")
                : holds(
                      "PodsReady", "All pods were ready or succeeded since the workload admission");
        return TellWorkload{*workload, condition_now(*workload, "PodsReady", answer, now)};
    }
    if (pods_left) {
        return std::nullopt;
    }
    if (is_final(lifecycle.state)) {
        const bool succeeded = lifecycle.state == JobState::kComplete;
        const Condition answer = holds(succeeded ? "Succeeded" : "Failed", lifecycle.message);
        return TellWorkload{*workload, condition_now(*workload, "Finished", answer, now)};
    }
    if (!keeps_place(lifecycle.state)) {
        return deletion_of(*workload);
    }
    return reserved && is_true(*workload, "Evicted")
               ? std::optional<Action>(release(*workload, now))
               : std::nullopt;
}

}  // namespace stoker::control
