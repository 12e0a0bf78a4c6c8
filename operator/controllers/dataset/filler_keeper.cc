#include "operator/controllers/dataset/filler_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log/log.h"
#include "operator/api/time_format.h"
#include "operator/controllers/gather.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/warmups.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

JobManifest FillerKeeper::build(
    const Dataset& dataset, const FillerPlace& place, std::optional<WallTime> run) const {
    return build_filler({dataset, find_pool(place.pool), parts_.job_settings(), place.node, run});
}

std::vector<DatasetWarmup> FillerKeeper::find_warmups(const Dataset& dataset) const {
    return values_of(
        parts_.cache.warmups().store().by_index(index::kDataset, to_string(dataset.meta.key())));
}

ResolvedPool FillerKeeper::find_pool(const std::string& name) const {
    ResolvedPool pool;
    pool.name = name;
    if (const auto stored = parts_.cache.pools().store().get({"", name})) {
        pool.reserved_free_percent = stored->value.spec.reserved_free_percent;
    }
    return pool;
}

FillerKeeper::Look FillerKeeper::look(const Dataset& dataset, const std::vector<JobUse>& users) {
    const ObjectKey key = dataset.meta.key();
    const std::string index = to_string(ObjectKey{key.ns, dataset.meta.uid});
    FillerView view;
    view.dataset = dataset;
    const std::vector<DatasetWarmup> warmups = find_warmups(dataset);
    view.runs = runs_by_place(dataset, warmups);
    std::set<FillerPlace> places = guest_places(dataset, users);
    for (const FillerPlace& guests : places) {
        view.runs.erase(guests);  // guests keep the listing that they read
    }
    places.merge(warmup_places(dataset, warmups, parts_.clock.wall_now()));
    std::map<std::string, std::string> digests;  // by pool
    for (const FillerPlace& place : places) {
        const auto [digest, is_new] = digests.try_emplace(place.pool);
        if (is_new) {
            digest->second =
                filler_digest({dataset, find_pool(place.pool), parts_.job_settings(), ""});
        }
        view.needed[place] = digest->second;
    }
    view.jobs = values_of(parts_.cache.filler_jobs().store().by_index(index::kFiller, index));
    const std::vector<Pod> pods =
        values_of(parts_.cache.filler_pods().store().by_index(index::kFiller, index));
    view.silent = find_silent(dataset, warmups, pods);
    if (view.needed.empty()) {
        refusals_.forget(key);
    }
    Look result;
    result.plan = plan_fillers(view, parts_.clock.wall_now());
    result.states =
        find_filler_states(view, pods, refusals_.words(key), find_diagnoses(view.jobs, pods));
    return result;
}

// An operator that does not listen to sidecars cannot tell which are silent.
std::map<FillerPlace, Duration> FillerKeeper::find_silent(
    const Dataset& dataset,
    const std::vector<DatasetWarmup>& warmups,
    const std::vector<Pod>& pods) {
    const TimePoint now = parts_.clock.now();
    const std::set<FillerPlace> places =
        parts_.nodes.listening_since() ? open_places(dataset, warmups) : std::set<FillerPlace>{};
    const std::set<ReportingPod> reporting = reporting_pods(dataset, places);
    SilentPods since;
    std::map<FillerPlace, Duration> result;
    auto silent = silent_.lock();
    SilentPods& before = (*silent)[dataset.meta.key()];
    for (const Pod& pod : pods) {
        const FillerPlace place = place_of(pod.meta);
        if (pod.ready && !pod.meta.deleting_since && places.contains(place) &&
            !reporting.contains({place.pool, pod.meta.name})) {
            const TimePoint first = before.emplace(pod.meta.uid, now).first->second;
            since.emplace(pod.meta.uid, first);
            result.emplace(place, now - first);
        }
    }
    before = std::move(since);
    return result;
}

std::set<FillerKeeper::ReportingPod> FillerKeeper::reporting_pods(
    const Dataset& dataset, const std::set<FillerPlace>& places) const {
    const Moment now{parts_.clock.now(), parts_.clock.wall_now()};
    std::set<std::string> pools;
    for (const FillerPlace& place : places) {
        pools.insert(place.pool);
    }
    std::set<ReportingPod> pods;
    for (const std::string& pool : pools) {
        const ObjectKey job{dataset.meta.ns, filler_training_job(dataset, pool)};
        for (const SidecarReport& report : parts_.registry.of_job(job)) {
            if (is_fresh(report, now)) {
                pods.emplace(pool, report.pod);
            }
        }
    }
    return pods;
}

FillerDiagnoses FillerKeeper::find_diagnoses(
    const std::vector<Job>& jobs, const std::vector<Pod>& pods) {
    std::map<std::string, std::vector<Pod>> by_job;
    for (const Pod& pod : pods) {
        by_job[job_name_of(pod)].push_back(pod);
    }
    FillerDiagnoses troubles;
    for (const Job& job : jobs) {
        troubles[place_of(job.meta)] =
            diagnoses_.find(job.meta.key(), {job}, by_job[job.meta.name]);
    }
    return troubles;
}

bool FillerKeeper::has_seen_own_writes(const ObjectKey& dataset) {
    return writes_.are_seen(parts_.cache.filler_jobs().store(), dataset);
}

Result<std::optional<Duration>> FillerKeeper::act(const Dataset& dataset, const FillerPlan& plan) {
    std::optional<Duration> next = plan.look_again;
    for (const FillerJob& job : plan.remove) {
        STOKER_TRY_VOID(remove(dataset, job));
    }
    for (const FillerMark& mark : plan.mark) {
        const std::string since = format_time(mark.since);
        STOKER_TRY_VOID(
            patch(dataset, mark.job, annotation_patch(std::string{kIdleSinceAnnotation}, since)));
    }
    for (const FillerRenewal& renewal : plan.renew) {
        STOKER_TRY_VOID(patch(dataset, renewal.job, deadline_patch(renewal.deadline_seconds)));
    }
    const Runs runs = plan.create.empty() ? Runs{} : runs_by_place(dataset, find_warmups(dataset));
    for (const FillerPlace& place : plan.create) {
        STOKER_TRY(const std::optional<Duration> wait, create(dataset, place, runs));
        next = earliest(next, wait);
    }
    return next;
}

Result<std::optional<Duration>> FillerKeeper::create(
    const Dataset& dataset, const FillerPlace& place, const Runs& runs) {
    const ObjectKey key = dataset.meta.key();
    // Sidecars report every few seconds, and every report reconciles the Dataset.
    if (const std::optional<Duration> wait = refusals_.wait(key, place)) {
        return wait;
    }
    const auto run = runs.find(place);
    const Json job = to_json(
        build(dataset, place, run == runs.end() ? std::nullopt : std::optional(run->second)));
    const Result<Object> made = parts_.client.create(kinds::kJobs, key.ns, job);
    if (!made) {
        return refusals_.note(key, place, made.error());
    }
    refusals_.forget(key, place);
    writes_.note(key, made->resource_version);
    log::info("starting a filler", {{"object", to_string(key)}, {"node", place.node}});
    return std::optional<Duration>{};
}

Status FillerKeeper::remove(const Dataset& dataset, const FillerJob& job) {
    log::info("stopping a filler", {{"object", to_string(dataset.meta.key())}, {"job", job.name}});
    diagnoses_.clear({dataset.meta.ns, job.name});
    return remove_job(parts_.client, {dataset.meta.ns, job.name}, job.uid);
}

Status FillerKeeper::patch(const Dataset& dataset, const FillerJob& job, const Json& body) {
    const Result<Object> done =
        parts_.client.patch(kinds::kJobs, {dataset.meta.ns, job.name}, body, PatchType::kMerge);
    if (done) {
        writes_.note(dataset.meta.key(), done->resource_version);
    } else if (done.error().code != ErrorCode::kNotFound) {
        return fail(done.error());
    }
    return {};
}

void FillerKeeper::forget(const ObjectKey& dataset) {
    writes_.forget(dataset);
    refusals_.forget(dataset);
    silent_.lock()->erase(dataset);
}

}  // namespace stoker::control
