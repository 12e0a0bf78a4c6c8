#include "operator/webhook/injector.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "operator/api/document.h"
#include "operator/controllers/gather.h"
#include "operator/core/spec/validate_host_paths.h"
#include "operator/core/workload/foreign_checks.h"

namespace stoker::control {

namespace {

constexpr const char* kAction = "Inject";
constexpr const char* kDefaultReason = "NotInjected";
constexpr const char* kInvalid = "Invalid";

EventSubject subject_of_ref(const std::string& ns, const WorkloadRef& ref) {
    return {ref.api_version, ref.kind, {ns, ref.name}, ref.uid, ""};
}

EventNote note_on(EventSubject subject, const std::string& reason, const std::string& message) {
    EventNote note;
    note.regarding = std::move(subject);
    note.type = EventType::kWarning;
    note.reason = reason;
    note.action = kAction;
    note.note = message;
    return note;
}

// The words about a refused pod. A pod to which an earlier call gave its cache keeps it.
std::string tell_refusal(const ForeignPod& pod, const std::string& why) {
    return is_injected(pod)
               ? fmt::format(
                     "pod was given its cache, but was changed since, and now breaks a "
                     "rule: {}",
                     why)
               : fmt::format("pod runs without {}: {}", describe_lack(pod), why);
}

// Lets the pod start as it is. `subjects`: the objects that get an Event with the reason.
Injection refuse(
    const AdmissionRequest& request,
    const ForeignPod& pod,
    std::vector<EventSubject> subjects,
    const std::string& reason,
    const std::string& why) {
    Injection result;
    result.outcome = "refused";
    if (!is_injected(pod)) {
        result.patch = refusal_patch(request.pod, why);
    }
    const std::string told = tell_refusal(pod, why);
    result.warnings = {"stoker: the " + told};
    if (request.dry_run) {
        return result;
    }
    for (EventSubject& subject : subjects) {
        result.events.push_back(note_on(std::move(subject), reason, "A " + told));
    }
    return result;
}

std::vector<EventSubject> subjects_of(
    const AdmissionRequest& request,
    const OwnerReference& controller,
    const ForeignWorkload& workload) {
    const WorkloadRef direct{
        controller.api_version, controller.kind, controller.name, controller.uid};
    std::vector<EventSubject> result = {subject_of_ref(request.ns, workload.ref)};
    if (direct != workload.ref) {
        result.push_back(subject_of_ref(request.ns, direct));
    }
    return result;
}

bool is_ours(const WorkloadRef& workload) {
    return workload.api_version.starts_with("stoker.dev/");
}

}  // namespace

Injector::Injector(Parts parts)
    : parts_(std::move(parts)) {}

Result<Injection> Injector::inject(const AdmissionRequest& request) {
    if (!parts_.has_listed()) {
        return fail(ErrorCode::kUnavailable, "this replica has not listed the cluster yet");
    }
    STOKER_TRY(ForeignPod pod, read_document<ForeignPod>(request.pod));
    const bool asks = !value_or_empty(pod.meta.labels, kDatasetLabel).empty();
    if (!asks || request.ns == parts_.own_namespace || request.ns.starts_with("kube-")) {
        return Injection{};
    }
    const OwnerReference* controller = pod.meta.controller();
    if (controller == nullptr) {
        const std::string why =
            "no controller owns it, so it has no uid yet by which its sidecar could report; let a "
            "Job make it";
        return refuse(
            request,
            pod,
            {{"v1", "Pod", {request.ns, pod.meta.name}, "", ""}},
            "NoController",
            why);
    }
    const OwnerReference owner = *controller;
    Result<ForeignWorkload> workload = parts_.owners.find(request.ns, owner);
    if (!workload) {
        const ForeignWorkload direct{
            {owner.api_version, owner.kind, owner.name, owner.uid}, owner.uid, std::nullopt};
        return refuse(
            request,
            pod,
            subjects_of(request, owner, direct),
            "OwnerUnknown",
            fmt::format("its owners cannot be read: {}", workload.error().message));
    }
    return is_ours(workload->ref) ? Injection{}
                                  : inject_into({request, std::move(pod), owner, *workload});
}

Injection Injector::inject_into(const Case& found) {
    const auto subjects = subjects_of(found.request, found.controller, found.workload);
    // Snapshots of the Datasets that the pod names; they live as long as the search.
    std::vector<StoredPtr<Dataset>> kept;
    const auto find = [&](const ObjectKey& key) -> const Dataset* {
        kept.push_back(parts_.cache.datasets().store().get(key));
        return kept.back() ? &kept.back()->value : nullptr;
    };
    const Result<Json> spec = foreign_spec(found.pod, found.request.ns, found.workload, find);
    if (!spec) {
        return refuse(found.request, found.pod, subjects, kInvalid, spec.error().message);
    }
    const Result<TrainingJob> job = job_of(found, *spec, find);
    if (!job) {
        const bool is_taken = job.error().code == ErrorCode::kAlreadyExists;
        const char* reason = is_taken ? "NameTaken" : kInvalid;
        return refuse(found.request, found.pod, subjects, reason, job.error().message);
    }
    return patch(found, *spec, *job);
}

// The stored TrainingJob of the pod's workload, which users may have changed, with the pod's own
// accesses; if there is none, the one that will be created.
Result<TrainingJob> Injector::job_of(
    const Case& found, const Json& spec, const FindDataset& find_dataset) {
    const WorkloadRef& workload = found.workload.ref;
    STOKER_TRY(
        TrainingJob job,
        read_document<TrainingJob>(foreign_body(found.request.ns, workload, spec)));
    const auto stored = parts_.cache.training_jobs().store().get(job.meta.key());
    if (stored && !stored->value.spec.workload_ref) {
        return fail(
            ErrorCode::kAlreadyExists,
            fmt::format("TrainingJob {} exists and does not belong to a workload", job.meta.name));
    }
    const bool is_same = stored && stored->value.spec.workload_ref->uid == workload.uid;
    return is_same ? with_accesses(found.pod, stored->value, job, find_dataset) : std::move(job);
}

Injection Injector::patch(const Case& found, const Json& spec, const TrainingJob& job) {
    const auto subjects = subjects_of(found.request, found.controller, found.workload);
    const JobUse use = gather_use(job, parts_.cache);
    const Blocker& blocker =
        use.datasets->blocker.empty() ? use.pool.blocker : use.datasets->blocker;
    if (!use.datasets->blocker.empty() || use.pool.name.empty()) {
        return refuse(
            found.request,
            found.pod,
            subjects,
            blocker.empty() ? kDefaultReason : blocker.reason,
            blocker.empty() ? "its cache is switched off" : blocker.message);
    }
    const auto errors = validate_host_paths({}, use.datasets->datasets, pool_paths(parts_.cache));
    if (!errors.empty()) {
        return refuse(found.request, found.pod, subjects, kInvalid, to_string(errors));
    }
    Injection result;
    result.outcome = "cached";
    const JobSettings settings = parts_.settings();
    result.patch = foreign_patch(
        found.request.pod,
        found.pod,
        {spec, job, use.datasets->datasets, use.pool, settings, found.workload});
    const std::string bypass = tell_bypass(found.pod, use.datasets->datasets);
    if (!bypass.empty()) {
        result.warnings = {"stoker: " + bypass};
        if (!found.request.dry_run) {
            result.events = {note_on(subjects.front(), "EndpointDiffers", bypass)};
        }
    }
    return result;
}

}  // namespace stoker::control
