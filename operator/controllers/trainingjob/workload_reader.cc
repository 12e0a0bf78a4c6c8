#include "operator/controllers/trainingjob/workload_reader.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/api/document.h"
#include "operator/api/foreign_pod.h"
#include "operator/controllers/workload_kinds.h"
#include "operator/core/workload/foreign_job.h"

namespace stoker::control {

namespace {

constexpr Duration kKeep = std::chrono::seconds{10};
constexpr Duration kAdoptAgain = std::chrono::minutes{5};
constexpr std::size_t kKnownMax = 10'000;

// The TrainingJob whose spec the webhook has written into the pod's annotation. nullopt: there is
// no such annotation, or somebody has changed it.
std::optional<TrainingJob> job_on(const Pod& pod, const ObjectKey& key, Json& spec) {
    const std::string& text = value_or_empty(pod.meta.annotations, kWorkloadAnnotation);
    Result<Json> parsed = Json::parse(text);
    if (text.empty() || !parsed) {
        return std::nullopt;
    }
    spec = *std::move(parsed);
    const Json bare = json_object(
        {{"metadata", json_object({{"name", key.name}, {"namespace", key.ns}})}, {"spec", spec}});
    Result<TrainingJob> job = read_document<TrainingJob>(bare);
    const bool is_his =
        job && job->spec.workload_ref && foreign_job_name(*job->spec.workload_ref) == key.name;
    return is_his ? std::optional(*std::move(job)) : std::nullopt;
}

}  // namespace

WorkloadReader::WorkloadReader(const ControllerParts& parts)
    : parts_(parts) {}

WorkloadView WorkloadReader::read(const TrainingJob& job) {
    if (!job.spec.workload_ref) {
        return {};
    }
    const WorkloadRef& ref = *job.spec.workload_ref;
    const TimePoint now = parts_.clock.now();
    WorkloadView last;
    {
        auto state = state_.lock();
        const auto found = state->known.find(ref.uid);
        if (found != state->known.end()) {
            last = found->second.view;
            if (now < found->second.until) {
                return last;
            }
        }
    }
    const auto kind = workload_kind(ref.api_version, ref.kind);
    const Result<Object> object =
        kind ? parts_.client.get(*kind, {job.meta.ns, ref.name})
             : Result<Object>(fail(ErrorCode::kNotFound, "a kind that is not read"));
    if (object && object->uid == ref.uid) {
        last = {pods_of_workload(object->raw), end_of_workload(object->raw)};
    }
    auto state = state_.lock();
    if (state->known.size() >= kKnownMax) {
        state->known.clear();
    }
    state->known[ref.uid] = {last, now + kKeep};
    return last;
}

bool WorkloadReader::may_adopt(const WorkloadRef& workload) {
    auto state = state_.lock();
    const TimePoint now = parts_.clock.now();
    std::erase_if(state->adopted, [&](const auto& it) { return now >= it.second; });
    return state->adopted.emplace(workload.uid, now + kAdoptAgain).second;
}

// Whether the workload exists. One that the operator cannot read counts as existing.
bool WorkloadReader::exists(const std::string& ns, const WorkloadRef& workload) {
    const auto kind = workload_kind(workload.api_version, workload.kind);
    if (!kind) {
        return true;
    }
    const Result<Object> object = parts_.client.get(*kind, {ns, workload.name});
    return object ? object->uid == workload.uid : object.error().code != ErrorCode::kNotFound;
}

Status WorkloadReader::adopt(const ObjectKey& key) {
    if (!parts_.adopts_workloads) {
        return {};
    }
    for (const auto& pod :
         parts_.cache.pods().store().by_index(index::kTrainingJob, to_string(key))) {
        Json spec;
        const std::optional<TrainingJob> job = job_on(pod->value, key, spec);
        if (!job || has_ended(pod->value) || pod->value.meta.deleting_since) {
            continue;
        }
        const WorkloadRef& workload = *job->spec.workload_ref;
        if (!exists(key.ns, workload) || !may_adopt(workload)) {
            continue;
        }
        const Result<Object> made = parts_.client.create(
            kinds::kTrainingJobs, key.ns, foreign_body(key.ns, workload, spec));
        if (made || made.error().code == ErrorCode::kAlreadyExists) {
            log::info("described a workload", {{"object", to_string(key)}});
            return {};
        }
        tell_refusal(key, workload, made.error());
        const bool is_final = made.error().code == ErrorCode::kInvalidArgument ||
                              made.error().code == ErrorCode::kForbidden;
        if (!is_final) {
            state_.lock()->adopted.erase(workload.uid);
        }
        return is_final ? Status{} : fail(made.error());
    }
    return {};
}

void WorkloadReader::tell_refusal(
    const ObjectKey& key, const WorkloadRef& workload, const Error& error) {
    EventNote note;
    note.regarding = {
        workload.api_version, workload.kind, {key.ns, workload.name}, workload.uid, ""};
    note.type = EventType::kWarning;
    note.reason = "NotDescribed";
    note.action = "Reconcile";
    note.note = fmt::format(
        "Its pods get no cache bytes: TrainingJob {} cannot be created: {}",
        key.name,
        error.message);
    parts_.events.record(std::move(note));
}

}  // namespace stoker::control
