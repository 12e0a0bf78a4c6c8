#include "operator/webhook/owner_finder.h"

#include <utility>

#include "operator/api/document.h"
#include "operator/controllers/workload_kinds.h"

namespace stoker::control {

namespace {

constexpr Duration kKeep = std::chrono::minutes{10};
constexpr std::size_t kKnownMax = 10'000;
constexpr int kLevelsMax = 5;  // Pod, Job, JobSet, TrainJob are three

// Whether find() stops below an owner with this error, as if the object had no owner.
bool is_unreadable(ErrorCode code) {
    return code == ErrorCode::kNotFound || code == ErrorCode::kForbidden ||
           code == ErrorCode::kInvalidArgument;
}

}  // namespace

OwnerFinder::OwnerFinder(ApiClient& client, const Clock& clock)
    : client_(client),
      clock_(clock) {}

Result<ForeignWorkload> OwnerFinder::find(const std::string& ns, const OwnerReference& controller) {
    const TimePoint now = clock_.now();
    {
        auto known = known_.lock();
        const auto found = known->find(controller.uid);
        if (found != known->end() && now < found->second.until) {
            return found->second.workload;
        }
    }
    STOKER_TRY(ForeignWorkload workload, ask(ns, controller));
    auto known = known_.lock();
    if (known->size() >= kKnownMax) {
        known->clear();
    }
    (*known)[controller.uid] = {workload, now + kKeep};
    return workload;
}

Result<ForeignWorkload> OwnerFinder::ask(const std::string& ns, const OwnerReference& controller) {
    ForeignWorkload result{workload_ref_of(controller), controller.uid, std::nullopt};
    for (int level = 0; level < kLevelsMax; ++level) {
        const auto kind = workload_kind(result.ref.api_version, result.ref.kind);
        if (!kind) {
            return result;
        }
        const Result<Object> owner = client_.get(*kind, {ns, result.ref.name});
        if (!owner && is_unreadable(owner.error().code)) {
            return result;
        }
        if (!owner) {
            return fail(owner.error());
        }
        STOKER_TRY(const ObjectMeta meta, read_document<ObjectMeta>(owner->raw));
        if (meta.uid != result.ref.uid) {
            return result;  // another object has the name now
        }
        // A workload that does not say its number of pods has as many as the object that it owns.
        const auto count = pods_of_workload(owner->raw);
        result.pod_count = count ? count : result.pod_count;
        const OwnerReference* next = meta.controller();
        if (next == nullptr) {
            return result;
        }
        result.ref = workload_ref_of(*next);
    }
    return result;
}

}  // namespace stoker::control
