#include "operator/controllers/dataset/packing_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/workload/build_packing.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

// No event tells why a Job that should run has no running pod, so the keeper looks again, at
// growing intervals, because many Datasets may wait for the same quota.
std::optional<Duration> look_again(const PackingView& view, WallTime now) {
    std::optional<WallTime> since;
    for (const Job& job : view.jobs) {
        if (!job.end && !job.suspend && !job.meta.deleting_since) {
            since = std::max(since, std::optional(job.meta.created_at));
        }
    }
    for (const Pod& pod : view.pods) {
        if (pod.phase == PodPhase::kRunning) {
            return std::nullopt;
        }
        since = since ? std::max(since, std::optional(pod.meta.created_at)) : since;
    }
    return since ? std::optional(std::clamp<Duration>(
                       (now - *since) / 2, DiagnosisFinder::kLookEvery, PackingKeeper::kWaitMost))
                 : std::nullopt;
}

}  // namespace

PackingKeeper::Look PackingKeeper::look(const Dataset& dataset) {
    const ObjectKey key = dataset.meta.key();
    const std::string index = to_string(ObjectKey{key.ns, dataset.meta.uid});
    PackingView view;
    view.dataset = dataset;
    view.jobs = values_of(parts_.cache.packing_jobs().store().by_index(index::kPacking, index));
    view.pods = values_of(parts_.cache.packing_pods().store().by_index(index::kPacking, index));
    view.refusal = refusals_.words(key)[FillerPlace{}];
    if (!dataset.spec.packing) {
        return {plan_packing(view), {}, {}};
    }
    view.diagnosis = diagnoses_.find(key, view.jobs, view.pods);
    return {plan_packing(view), judge_packing(view), look_again(view, parts_.clock.wall_now())};
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
    refusals_.forget(dataset.meta.key());
    return std::optional<Duration>{};
}

Result<std::optional<Duration>> PackingKeeper::create(const Dataset& dataset) {
    const ObjectKey key = dataset.meta.key();
    if (const std::optional<Duration> wait = refusals_.wait(key, {})) {
        return wait;
    }
    const Json job = to_json(build_packing(dataset, parts_.job_settings()));
    const Result<Object> made = parts_.client.create(kinds::kJobs, key.ns, job);
    if (!made) {
        return refusals_.note(key, {}, made.error());
    }
    refusals_.forget(key);
    writes_.note(key, made->resource_version);
    log::info("packing a dataset", {{"object", to_string(key)}, {"job", made->key.name}});
    return std::optional<Duration>{};
}

Status PackingKeeper::remove(const Job& job) {
    log::info(
        "removing a packing job", {{"object", to_string(job.meta.key())}, {"uid", job.meta.uid}});
    return remove_job(parts_.client, job.meta.key(), job.meta.uid);
}

void PackingKeeper::forget(const ObjectKey& dataset) {
    writes_.forget(dataset);
    refusals_.forget(dataset);
    diagnoses_.clear(dataset);
}

}  // namespace stoker::control
