#include "operator/controllers/dataset/packing_keeper.h"

#include <chrono>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/lifecycle/refusal_words.h"
#include "operator/core/workload/build_packing.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

PackingKeeper::Look PackingKeeper::look(const Dataset& dataset) {
    const ObjectKey key = dataset.meta.key();
    const std::string index = to_string(ObjectKey{key.ns, dataset.meta.uid});
    PackingView view;
    view.dataset = dataset;
    view.jobs = values_of(parts_.cache.packing_jobs().store().by_index(index::kPacking, index));
    view.pods = values_of(parts_.cache.packing_pods().store().by_index(index::kPacking, index));
    {
        const auto refusals = refusals_.lock();
        const auto found = refusals->find(key);
        view.refusal = found == refusals->end() ? "" : found->second.words;
    }
    if (dataset.spec.packing) {
        view.diagnosis = diagnoses_.find(key, view.jobs, view.pods);
    }
    Look result;
    result.plan = plan_packing(view);
    if (dataset.spec.packing) {
        result.outcome = judge_packing(view);
    }
    return result;
}

bool PackingKeeper::has_seen_own_writes(const ObjectKey& dataset) {
    return writes_.are_seen(parts_.cache.packing_jobs().store(), dataset);
}

Result<std::optional<Duration>> PackingKeeper::act(
    const Dataset& dataset, const PackingPlan& plan) {
    for (const Job& job : plan.remove) {
        STOKER_TRY_VOID(remove(job));
    }
    if (plan.create) {
        return create(dataset);
    }
    refusals_.lock()->erase(dataset.meta.key());
    return std::optional<Duration>{};
}

Result<std::optional<Duration>> PackingKeeper::create(const Dataset& dataset) {
    const ObjectKey key = dataset.meta.key();
    {
        const auto refusals = refusals_.lock();
        const auto found = refusals->find(key);
        const Duration age =
            found == refusals->end() ? kTryAgain : parts_.clock.now() - found->second.at;
        if (age < kTryAgain) {
            return std::optional(kTryAgain - age);
        }
    }
    const Json job = to_json(build_packing(dataset, parts_.job_settings()));
    const Result<Object> made = parts_.client.create(kinds::kJobs, key.ns, job);
    if (!made) {
        return note_refusal(key, made.error());
    }
    refusals_.lock()->erase(key);
    writes_.note(key, made->resource_version);
    log::info("packing a dataset", {{"object", to_string(key)}, {"job", made->key.name}});
    return std::optional<Duration>{};
}

Result<std::optional<Duration>> PackingKeeper::note_refusal(
    const ObjectKey& dataset, const Error& error) {
    const bool taken = error.code == ErrorCode::kAlreadyExists;
    if (!taken && error.code != ErrorCode::kForbidden &&
        error.code != ErrorCode::kInvalidArgument) {
        return fail(error);
    }
    auto refusals = refusals_.lock();
    const bool again = refusals->contains(dataset);
    Refusal& refusal = (*refusals)[dataset];
    std::string words = refusal_words(error.message);
    if (taken) {
        // At the first conflict the Job is probably ours, and the cache is behind.
        words = again ? "somebody else's Job has its name" : "";
    }
    const bool news = refusal.words != words;
    refusal = {std::move(words), parts_.clock.now()};
    // The next round reports the refusal.
    return std::optional<Duration>{news ? Duration{std::chrono::milliseconds{1}} : kTryAgain};
}

Status PackingKeeper::remove(const Job& job) {
    log::info(
        "removing a packing job", {{"object", to_string(job.meta.key())}, {"uid", job.meta.uid}});
    DeleteParams params;
    params.uid = job.meta.uid;
    // The next Job waits until this one's pod is gone.
    params.propagation = Propagation::kForeground;
    const Status done = parts_.client.remove(kinds::kJobs, job.meta.key(), params);
    // The name belongs to another Job: the next round handles it.
    return !done && done.error().code == ErrorCode::kConflict ? Status{} : done;
}

void PackingKeeper::forget(const ObjectKey& dataset) {
    writes_.forget(dataset);
    refusals_.lock()->erase(dataset);
    diagnoses_.clear(dataset);
}

}  // namespace stoker::control
