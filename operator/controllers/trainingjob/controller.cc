#include "operator/controllers/trainingjob/controller.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "common/log/log.h"
#include "operator/api/document.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/trainingjob/kueue_reader.h"
#include "operator/core/lifecycle/attempts.h"
#include "operator/core/lifecycle/pin_revisions.h"
#include "operator/core/sweep/plan_fillers.h"

namespace stoker::control {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPodsLate = seconds{5};
// Polling interval while an object that is not ours has a name that we need, or the API server
// refuses our objects: no event reports that this has ended.
constexpr Duration kLookForStrangers = seconds{30};

// A Job failed because of its pods, but no failed pod is known: Jobs and pods have separate
// watches, and the pods' is behind. The pods' failure decides whether the restart counts, so wait
// briefly.
bool pods_lag_behind(const TrainingJobView& view, WallTime now) {
    return std::any_of(view.jobs.begin(), view.jobs.end(), [&](const Job& job) {
        const bool just_failed = job.end && !job.end->succeeded && job.end->at &&
                                 job.end->reason != "DeadlineExceeded" &&
                                 std::chrono::abs(now - *job.end->at) < kPodsLate;
        return just_failed && std::none_of(view.pods.begin(), view.pods.end(), [&](const Pod& pod) {
                   return job_name_of(pod) == job.meta.name &&
                          (pod.phase == PodPhase::kFailed || !pod.disruption.empty() ||
                           pod.meta.deleting_since);
               });
    });
}

// Time until a Job without pods, or a pod without mounted volumes, counts as a problem; no event
// reports that moment.
std::optional<Duration> wonders_in(const TrainingJobView& view, WallTime now) {
    if (DiagnosisFinder::find_barren(view.jobs, view.pods, now + DiagnosisFinder::kPatience) !=
        nullptr) {
        return DiagnosisFinder::kPatience;
    }
    return DiagnosisFinder::find_unmounted(view.pods, now + DiagnosisFinder::kMountPatience) !=
                   nullptr
               ? std::optional(DiagnosisFinder::kMountPatience)
               : std::nullopt;
}

// Whether the plan adds a pin. A pin is written to the status before it is sent, so that the next
// operator sends the same pin.
bool has_new_pin(const TrainingJobStatus& before, const TrainingJobStatus& after) {
    return std::ranges::any_of(after.datasets, [&](const JobDatasetStatus& dataset) {
        return std::ranges::none_of(before.datasets, [&](const JobDatasetStatus& other) {
            return other.name == dataset.name && other.revision == dataset.revision &&
                   other.revision_attempt == dataset.revision_attempt;
        });
    });
}

}  // namespace

TrainingJobController::TrainingJobController(const ControllerParts& parts)
    : parts_(parts),
      status_(parts.client, kinds::kTrainingJobs, parts.clock),
      jobs_made_(parts.clock),
      workloads_made_(parts.clock),
      diagnoses_(parts.client, parts.clock),
      workloads_(parts) {}

Result<Reconciled> TrainingJobController::reconcile(const ObjectKey& key) {
    const auto stored = parts_.cache.training_jobs().store().get(key);
    if (!stored) {
        forget(key);
        STOKER_TRY_VOID(workloads_.adopt(key));
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.training_jobs().store(), key) ||
        !jobs_made_.are_seen(parts_.cache.jobs().store(), key) ||
        !workloads_made_.are_seen(parts_.cache.workloads().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    const TrainingJobView view = gather(stored->value);
    if (pods_lag_behind(view, parts_.clock.wall_now())) {
        return Reconciled{kCacheBehind};
    }
    TrainingJobPlan plan = plan_training_job(view, {parts_.clock.now(), parts_.clock.wall_now()});
    TrainingJob after = view.job;
    after.status = plan.status;
    const bool urgent = !plan.actions.empty() || has_new_pin(view.job.status, plan.status);
    STOKER_TRY(const StatusWrite write, status_.write(view.job, after, urgent));
    if (write.outcome == StatusOutcome::kGone) {
        return Reconciled{kCacheBehind};
    }
    if (write.outcome == StatusOutcome::kWritten) {
        tell(view, plan.events);
    }
    const std::optional<Duration> held = send_pins(view, plan);
    const Status acted = act(view, plan.actions);
    if (!acted && acted.error().code != ErrorCode::kInvalidArgument &&
        acted.error().code != ErrorCode::kForbidden) {
        return fail(acted.error());
    }
    std::optional<Duration> next = earliest(earliest(plan.requeue_after, write.again_after), held);
    if (!acted) {
        // The next round writes the refusal to the status; later rounds retry.
        const bool news = diagnoses_.note_refusal(key, acted.error());
        next = earliest(next, news ? milliseconds{1} : kLookForStrangers);
    }
    if (!view.diagnosis.words.empty() || clashes_.lock()->contains(key)) {
        next = earliest(next, kLookForStrangers);
    }
    return Reconciled{earliest(next, wonders_in(view, parts_.clock.wall_now()))};
}

void TrainingJobController::forget(const ObjectKey& key) {
    status_.forget(key);
    jobs_made_.forget(key);
    workloads_made_.forget(key);
    diagnoses_.clear(key);
    parts_.registry.pin(key, {});
    pin_hold_.lock()->forget(key);
    clashes_.lock()->erase(key);
}

std::optional<Duration> TrainingJobController::send_pins(
    const TrainingJobView& view, const TrainingJobPlan& plan) {
    const ObjectKey key = view.job.meta.key();
    AttemptPins pins = plan.pins;
    const AttemptPins written = pins_of(view, view.job.status);
    const std::optional<Duration> held =
        pin_hold_.lock()->hold(key, plan.missing_peers, parts_.clock.now(), pins, written);
    parts_.registry.pin(key, std::move(pins));
    return held;
}

TrainingJobView TrainingJobController::gather(const TrainingJob& job) {
    const ObjectKey key = job.meta.key();
    TrainingJobView view;
    const JobUse use = gather_use(job, parts_.cache);
    view.job = job;
    view.datasets = use.datasets;
    view.pool = use.pool;
    view.pods.assign(use.pods.begin(), use.pods.end());
    view.reports = believable_reports(use, parts_.registry);
    for (const auto& child :
         parts_.cache.jobs().store().by_index(index::kTrainingJob, to_string(key))) {
        if (owns(job.meta, child->value.meta)) {
            view.jobs.push_back(child->value);
        }
    }
    if (const auto service = parts_.cache.services().store().get({key.ns, service_name(job)})) {
        view.service = service->value;
    }
    add_nodes(view);
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        if (auto group = parts_.registry.peer_group(dataset.uid)) {
            view.peers[dataset.uid] = *std::move(group);
        }
    }
    add_allocation(view);
    add_fillers(view);
    view.settings = parts_.job_settings();
    view.workload = workloads_.read(job);
    view.diagnosis.words = diagnoses_.find(key, view.jobs, view.pods);
    view.diagnosis.is_invalid = diagnoses_.is_invalid(key);
    view.pool_paths = pool_paths(parts_.cache);
    view.kueue =
        read_kueue(job, find_attempts(view).current != nullptr, parts_.cache, parts_.client);
    add_strangers(view);
    return view;
}

void TrainingJobController::add_allocation(TrainingJobView& view) {
    const LatestAllocation::Snapshot allocation = parts_.latest.get();
    std::set<std::string> uids;
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        if (uids.insert(dataset.uid).second) {
            allocation->add_holdings(dataset.uid, view.holdings);
        }
        if (const auto placing = allocation->placings.find(dataset.uid);
            placing != allocation->placings.end()) {
            view.placings.insert(*placing);
        }
    }
    if (const JobAllocation* planned = allocation->find(view.job.meta.key())) {
        view.allocation = *planned;
    }
    if (const auto found = allocation->profiles.find(view.job.meta.key());
        found != allocation->profiles.end()) {
        view.profile = found->second;
    }
}

void TrainingJobController::add_fillers(TrainingJobView& view) {
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        const auto stored =
            dataset.ns == view.job.meta.ns
                ? nullptr
                : parts_.cache.datasets().store().get({dataset.ns, dataset.object_name});
        const Condition* fillers =
            stored ? find_condition(stored->value.status.conditions, std::string{kFillersReady})
                   : nullptr;
        if (fillers != nullptr) {
            view.fillers[dataset.uid] = *fillers;
        }
    }
}

// The watch of nodes may be behind that of pods. So the server is asked for the node of a
// terminating pod before the pod counts as lost; without an answer the node counts as present.
void TrainingJobController::add_nodes(TrainingJobView& view) {
    for (const Pod& pod : view.pods) {
        const ObjectKey key{"", pod.node_name};
        if (const auto node = parts_.cache.nodes().store().get(key)) {
            view.nodes.push_back(node->value);
        } else if (pod.meta.deleting_since && !has_ended(pod) && !pod.node_name.empty()) {
            const Result<Object> object = parts_.client.get(kinds::kNodes, key);
            if (object || object.error().code != ErrorCode::kNotFound) {
                Node present;
                present.meta.name = pod.node_name;
                view.nodes.push_back(std::move(present));
            }
        }
    }
}

// The watches see only objects with our label. If a create conflicts with an object that lacks the
// label, get that object by name.
void TrainingJobController::add_strangers(TrainingJobView& view) {
    const ObjectKey key = view.job.meta.key();
    if (!clashes_.lock()->contains(key)) {
        return;
    }
    bool found = false;
    const std::string name = job_name(view.job, std::max<std::int64_t>(view.job.status.attempt, 1));
    if (const auto object = parts_.client.get(kinds::kJobs, {key.ns, name})) {
        const Result<Job> job = read_document<Job>(object->raw);
        if (job && !owns(view.job.meta, job->meta)) {
            view.jobs.push_back(*job);
            found = true;
        }
    }
    if (const auto object = parts_.client.get(kinds::kServices, {key.ns, service_name(view.job)})) {
        const Result<ObjectMeta> service = read_document<ObjectMeta>(object->raw);
        if (service && !owns(view.job.meta, *service)) {
            view.service = *service;
            found = true;
        }
    }
    if (!found) {
        clashes_.lock()->erase(key);
    }
}

Status TrainingJobController::act(const TrainingJobView& view, const std::vector<Action>& actions) {
    for (const Action& action : actions) {
        STOKER_TRY_VOID(std::visit([&](const auto& chosen) { return act(view, chosen); }, action));
    }
    return {};
}

Status TrainingJobController::act(const TrainingJobView& view, const CreateService& action) {
    return create(view, kinds::kServices, to_json(action.service));
}

Status TrainingJobController::act(const TrainingJobView& view, const CreateJob& action) {
    log::info(
        "starting an attempt",
        {{"object", to_string(view.job.meta.key())}, {"job", action.job.meta.name}});
    STOKER_TRY_VOID(create(view, kinds::kJobs, to_json(action.job)));
    diagnoses_.clear(view.job.meta.key());
    return {};
}

Status TrainingJobController::create(
    const TrainingJobView& view, const ResourceKind& kind, const Json& body) {
    const Result<Object> made = parts_.client.create(kind, view.job.meta.ns, body);
    if (made) {
        if (kind == kinds::kJobs) {
            jobs_made_.note(view.job.meta.key(), made->resource_version);
        } else if (kind == kinds::kWorkloads) {
            workloads_made_.note(view.job.meta.key(), made->resource_version);
        }
        return {};
    }
    if (made.error().code != ErrorCode::kAlreadyExists) {
        return fail(made.error());
    }
    // Either our own object, which the cache does not show yet, or a foreign one. The next round
    // checks.
    clashes_.lock()->insert(view.job.meta.key());
    return {};
}

Status TrainingJobController::act(const TrainingJobView& view, const DeleteJob& action) {
    log::info(
        "stopping an attempt", {{"object", to_string(view.job.meta.key())}, {"job", action.name}});
    DeleteParams params;
    params.uid = action.uid;
    params.resource_version = action.resource_version;
    params.propagation = Propagation::kForeground;
    return remove(kinds::kJobs, {view.job.meta.ns, action.name}, params);
}

Status TrainingJobController::remove(
    const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) {
    const Status done = parts_.client.remove(kind, key, params);
    // The object was replaced or has a newer version: its event wakes us.
    return !done && done.error().code == ErrorCode::kConflict ? Status{} : done;
}

Status TrainingJobController::act(const TrainingJobView& view, const CreateWorkload& action) {
    STOKER_TRY_VOID(create(view, kinds::kWorkloads, to_json(action.workload)));
    diagnoses_.clear(view.job.meta.key());
    return {};
}

Status TrainingJobController::act(const TrainingJobView& view, const DeleteWorkload& action) {
    DeleteParams params;
    params.uid = action.uid;
    return remove(kinds::kWorkloads, {view.job.meta.ns, action.name}, params);
}

Status TrainingJobController::act(const TrainingJobView& /*view*/, const ReleaseQuota& action) {
    return write_workload(
        action.workload, std::string{kAdmissionManager}, admission_body(action.workload));
}

Status TrainingJobController::act(const TrainingJobView& /*view*/, const TellWorkload& action) {
    return write_workload(
        action.workload,
        manager_of_condition(action.condition.type),
        condition_body(action.workload, action.condition));
}

// The version is outdated, or the Workload is gone: its event wakes us.
Status TrainingJobController::write_workload(
    const Workload& workload, const std::string& manager, const Json& body) {
    const Result<Object> done =
        parts_.client.apply_status_as(manager, kinds::kWorkloads, workload.meta.key(), body);
    if (!done && done.error().code != ErrorCode::kConflict &&
        done.error().code != ErrorCode::kNotFound) {
        return fail(done.error());
    }
    return {};
}

Status TrainingJobController::act(const TrainingJobView& view, const DeleteTrainingJob& action) {
    DeleteParams params;
    params.uid = action.uid;
    return remove(kinds::kTrainingJobs, view.job.meta.key(), params);
}

void TrainingJobController::tell(const TrainingJobView& view, const std::vector<JobEvent>& events) {
    for (const JobEvent& event : events) {
        log::info(
            "state changed",
            {{"object", to_string(view.job.meta.key())},
             {"reason", event.reason},
             {"message", event.message}});
        EventNote note;
        note.regarding = subject_of(kinds::kTrainingJobs, view.job.meta);
        note.type = event.warning ? EventType::kWarning : EventType::kNormal;
        note.reason = event.reason;
        note.action = "Reconcile";
        note.note = event.message;
        if (const auto& workload = view.job.spec.workload_ref) {
            EventNote other = note;
            other.related = note.regarding;
            other.regarding = {
                workload->api_version,
                workload->kind,
                {view.job.meta.ns, workload->name},
                workload->uid,
                ""};
            parts_.events.record(std::move(other));
        }
        parts_.events.record(std::move(note));
    }
}

}  // namespace stoker::control
