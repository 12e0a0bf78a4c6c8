#include "operator/controllers/warmup/controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/status/warmup_schedule.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/view/training_job_view.h"
#include "operator/core/view/warmups.h"

namespace stoker::control {

namespace {

bool may_get_room(const DatasetWarmup& warmup, const ControllerParts& parts) {
    const LatestAllocation::Snapshot latest = parts.latest.get();
    return !latest->decided_at || !latest->view.settled ||
           makes_room(
               latest->plan.sweeps,
               warmup,
               values_of(
                   parts.cache.datasets().store().by_index(index::kNamespace, warmup.meta.ns)));
}

// When a scheduled run begins, fillers that no guest needs are replaced. Until then they report the
// listing of an earlier run, so their reports are dropped.
void drop_older_fillers(
    const DatasetWarmup& warmup, const std::set<FillerPlace>& guests, WallTime now, JobUse& use) {
    const std::optional<WallTime> run = warmup.status.last_schedule_time;
    std::erase_if(use.pods, [&](const Pod& pod) {
        return run && !guests.contains(place_of(pod.meta)) && !is_made_for(pod.meta, *run, now);
    });
}

// The reports of jobs, and of fillers that have listed the origin for this run.
std::vector<SidecarReport> reports_on(
    const DatasetWarmup& warmup, const Dataset& dataset, const ControllerParts& parts) {
    std::vector<SidecarReport> result;
    std::vector<JobUse> users;
    const auto add = [&](const JobUse& use) {
        const std::vector<SidecarReport> reports = reports_on_datasets(use, parts.registry);
        result.insert(result.end(), reports.begin(), reports.end());
    };
    for (const auto& job : parts.cache.training_jobs().store().by_index(
             index::kDataset, to_string(dataset.meta.key()))) {
        add(users.emplace_back(gather_use(shared(job), parts.cache)));
    }
    const std::set<FillerPlace> guests = guest_places(dataset, users);
    for (JobUse& use : gather_fillers(dataset, parts.cache)) {
        drop_older_fillers(warmup, guests, parts.clock.wall_now(), use);
        add(use);
    }
    return result;
}

// Time until the next run; nullopt: none, or it is due once the run or suspension ends.
std::optional<Duration> until_next(const DatasetWarmup& warmup, WallTime now) {
    const std::optional<WallTime> next = warmup.status.next_schedule_time;
    return next && *next > now ? std::optional<Duration>(*next - now) : std::nullopt;
}

// Time until the finished warm-up is deleted; nullopt: it stays.
std::optional<Duration> until_removal(const DatasetWarmup& warmup, WallTime now) {
    const DatasetWarmupSpec& spec = warmup.spec;
    const std::optional<WallTime> ended = warmup.status.completion_time;
    if (!spec.ttl_seconds_after_finished || !ended || !spec.schedule.empty()) {
        return std::nullopt;
    }
    return *ended - now + std::chrono::seconds{*spec.ttl_seconds_after_finished};
}

// Fillers and grants follow from these fields, so they are written at once.
bool begins_anew(const DatasetWarmupStatus& before, const DatasetWarmupStatus& after) {
    return (before.nodes.empty() && !after.nodes.empty()) ||
           before.last_schedule_time != after.last_schedule_time;
}

bool do_jobs_use_origin(const std::string& pool, const ControllerParts& parts) {
    const LatestAllocation::Snapshot latest = parts.latest.get();
    return std::ranges::any_of(latest->plan.fill_origins, [&](const FillOrigin& origin) {
        return origin.pool == pool && origin.bytes_per_second == 0;
    });
}

}  // namespace

Result<Reconciled> DatasetWarmupController::reconcile(const ObjectKey& key) {
    const auto stored = parts_.cache.warmups().store().get(key);
    if (!stored) {
        status_.forget(key);
        return Reconciled{};
    }
    if (stored->value.meta.deleting_since) {
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.warmups().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    const Moment now{parts_.clock.now(), parts_.clock.wall_now()};
    const WarmupView view = gather(follow_schedule(stored->value, now.wall));
    DatasetWarmup after = view.warmup;
    after.status = summarize_warmup(view, now);
    const bool begins = begins_anew(stored->value.status, after.status);
    STOKER_TRY(StatusWrite write, status_.write(stored->value, after, begins));
    if (write.outcome == StatusOutcome::kWritten) {
        tell(view.warmup, after);
    }
    write.again_after = earliest(write.again_after, until_next(after, now.wall));
    if (!is_finished(after)) {
        // Neither silence nor a grant that stays full causes an event, so look again by time.
        return Reconciled{earliest(write.again_after, kLookEvery)};
    }
    const std::optional<Duration> left = until_removal(after, now.wall);
    if (left && *left <= Duration{}) {
        STOKER_TRY_VOID(remove(after));
        return Reconciled{};
    }
    return Reconciled{earliest(write.again_after, left)};
}

WarmupView DatasetWarmupController::gather(const DatasetWarmup& warmup) {
    const std::string& ns = warmup.meta.ns;
    WarmupView view;
    view.warmup = warmup;
    if (is_finished(warmup)) {
        return view;  // it keeps its status
    }
    view.pool = resolve_pool(
        warmup,
        values_of(parts_.cache.pools().store().list()),
        values_of(parts_.cache.quotas().store().by_index(index::kNamespace, ns)));
    const bool has_chosen = !warmup.status.nodes.empty();
    const std::string& name = has_chosen ? warmup.status.pool : view.pool.name;
    if (const auto pool = parts_.cache.pools().store().get({"", name})) {
        view.cache_pool = pool->value;
    }
    view.nodes = values_of(parts_.cache.nodes().store().list());
    const ObjectKey dataset{ns, warmup.spec.dataset_ref};
    const auto found = parts_.cache.datasets().store().get(dataset);
    if (!found) {
        return view;
    }
    view.dataset = found->value;
    view.room_may_come = may_get_room(warmup, parts_);
    view.listening_since = parts_.nodes.listening_since();
    view.jobs_use_origin = do_jobs_use_origin(name, parts_);
    view.reports = reports_on(warmup, found->value, parts_);
    return view;
}

Status DatasetWarmupController::remove(const DatasetWarmup& warmup) {
    log::info("removing a finished warm-up", {{"object", to_string(warmup.meta.key())}});
    DeleteParams params;
    params.uid = warmup.meta.uid;
    const Status done = parts_.client.remove(kinds::kDatasetWarmups, warmup.meta.key(), params);
    // Another object has the name: the next event handles it.
    return !done && done.error().code == ErrorCode::kConflict ? Status{} : done;
}

void DatasetWarmupController::tell(const DatasetWarmup& before, const DatasetWarmup& after) {
    if (is_finished(before) || !is_finished(after)) {
        return;
    }
    const bool failed = is_true(after.status.conditions, std::string{kWarmupFailed});
    const std::string type{failed ? kWarmupFailed : kWarmupComplete};
    const Condition& end = *find_condition(after.status.conditions, type);
    log::info(
        "a warm-up has ended",
        {{"object", to_string(after.meta.key())},
         {"reason", end.reason},
         {"message", end.message}});
    EventNote note;
    note.regarding = subject_of(kinds::kDatasetWarmups, after.meta);
    note.type = failed || end.reason != "Warmed" ? EventType::kWarning : EventType::kNormal;
    note.reason = end.reason;
    note.action = "Warm";
    note.note = end.message;
    parts_.events.record(std::move(note));
}

}  // namespace stoker::control
