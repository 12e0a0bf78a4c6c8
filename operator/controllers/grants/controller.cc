#include "operator/controllers/grants/controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/view/grant_book.h"
#include "operator/core/view/guests.h"
#include "operator/core/view/measured_demand.h"
#include "operator/core/view/warmups.h"
#include "operator/core/workload/build_filler.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

// Granted bytes of each pool. A grant does not name its pool, so a job with the dataset gives it.
std::map<std::string, Bytes> granted_by_pool(
    const ClusterView& cluster, const std::vector<Grant>& grants) {
    std::map<std::string, std::string> pool_of;  // by dataset uid
    for (const JobUse& use : cluster.jobs) {
        for (const ResolvedDataset& dataset : use.datasets->datasets) {
            if (use.has_demand()) {
                pool_of[dataset.uid] = use.pool.name;
            }
        }
    }
    std::map<std::string, Bytes> granted;
    for (const Grant& grant : grants) {
        granted[pool_of[grant.dataset_uid]] += grant.resident_bytes;
    }
    return granted;
}

// Includes pods of ended and deleted jobs: while their sidecar leads, it must receive smaller grants.
// Guests never lead, so they get none. A pod that the cluster's view lacks gets none either, because
// GrantBook counts no grant where it knows no pod (ObservedResidency::live).
GrantReaders readers_of(const ClusterView& cluster) {
    GrantReaders result;
    for (const JobUse& use : cluster.jobs) {
        for (const Pod& pod : use.pods) {
            if (use.pool.name.empty() || pod.node_name.empty() || has_ended(pod)) {
                continue;
            }
            for (const ResolvedDataset& dataset : use.datasets->datasets) {
                if (!is_guest(use.job, dataset)) {
                    result[pod.meta.key()].insert(dataset.uid);
                }
            }
        }
    }
    return result;
}

std::optional<WallTime> newest_report(const std::vector<SidecarReport>& reports) {
    std::optional<WallTime> newest;
    for (const SidecarReport& report : reports) {
        newest = std::max(newest, std::optional(report.received_wall));
    }
    return newest;
}

// The jobs that only one of the plans contains, or whose allocation differs.
std::set<ObjectKey> changed_jobs(const Allocation& before, const Allocation& after) {
    std::set<ObjectKey> changed;
    const auto add = [&changed](const Allocation& from, const Allocation& in) {
        for (const JobAllocation& job : from.plan.jobs) {
            const JobAllocation* other = in.find(job.job);
            if (other == nullptr || *other != job) {
                changed.insert(job.job);
            }
        }
    };
    add(before, after);
    add(after, before);
    return changed;
}

}  // namespace

GrantsController::GrantsController(
    const ControllerParts& parts, std::uint32_t grant_seconds, OnChange on_change)
    : parts_(parts),
      grant_seconds_(grant_seconds),
      on_change_(std::move(on_change)),
      profiles_(first_id(parts.clock.wall_now())),
      grants_(std::chrono::seconds{grant_seconds}),
      terminating_(std::chrono::seconds{grant_seconds} + GrantBook::kSlack),
      peers_(parts) {}

Result<Reconciled> GrantsController::reconcile(const ObjectKey& /*key*/) {
    const TimePoint now = parts_.clock.now();
    const Duration since = now - decided_at_;
    if (decided_at_ != TimePoint{} && since < pause_) {
        return Reconciled{pause_ - since};
    }
    decided_at_ = now;
    parts_.registry.forget_silent(now);
    const LatestAllocation::Snapshot before = parts_.latest.get();
    const Moment moment{now, parts_.clock.wall_now()};
    ClusterView cluster = gather(moment);
    profiles_.update(cluster, before->plan, moment);
    parts_.registry.ask(profiles_.probes());
    cluster.profiles = profiles_.profiles();
    const std::vector<OverQuotaHolder> late = find_over_quota_holders(cluster, reclaims_.late());
    cluster.held_back = hold_back(late);
    Allocation after;
    after.decided_at = moment.wall;
    after.view = look(cluster, moment);
    after.plan = plan_allocation(after.view);
    after.profiles = cluster.profiles;
    after.reports_absurd = profiles_.refused();
    after.granted = granted_by_pool(cluster, after.plan.grants);
    after.sampled_at = newest_report(cluster.reports);
    after.late = late;
    after.unheard = grants_.unheard();
    parts_.registry.publish(take_grants(cluster, after.plan, moment), readers_of(cluster), now);
    const std::vector<ObjectKey> moved = peers_.step(cluster, after.view.settled, moment);
    after.placings = peers_.placings();
    reclaims_.watch(after.plan.reclaims, now);
    after.took = parts_.clock.now() - now;
    keep(*before, std::move(after));
    std::ranges::for_each(moved, on_change_.job);
    tell_reclaims(cluster);
    // A third of the validity, so that a grant is repeated twice before it expires.
    return Reconciled{std::chrono::seconds{grant_seconds_} / 3};
}

std::vector<Grant> GrantsController::take_grants(
    const ClusterView& cluster, const AllocationPlan& plan, const Moment& now) {
    std::vector<Grant> told = grants_.take(plan);
    weigh_jobs(cluster, told);
    std::map<std::string, PeerGroup> groups;
    for (const JobUse& use : cluster.jobs) {
        if (auto group = use.filling.empty() ? std::nullopt
                                             : parts_.registry.peer_group(use.job->meta.uid)) {
            groups[use.job->meta.uid] = *std::move(group);
        }
    }
    order_fills(cluster, groups, plan.fill_origins, now, told);
    return told;
}

void GrantsController::keep(const Allocation& before, Allocation after) {
    pause_ = pause_after(after.took);
    tell_changes(before, *parts_.latest.put(std::move(after)));
}

Duration GrantsController::pause_after(Duration took) const {
    // A third of the validity is the last moment at which grants must be repeated.
    const Duration longest =
        std::max(kNotMoreOftenThan, Duration{std::chrono::seconds{grant_seconds_}} / 3);
    return std::clamp(took * kShareOfTime, kNotMoreOftenThan, longest);
}

ClusterView GrantsController::gather(const Moment& now) {
    ClusterView cluster =
        gather_cluster(parts_.cache, parts_.registry, parts_.nodes, grant_seconds_, now.wall);
    terminating_.add(cluster, parts_.cache, parts_.registry, now);
    return cluster;
}

AllocationView GrantsController::look(const ClusterView& cluster, const Moment& now) {
    AllocationView view = view_allocation(cluster, now);
    grants_.observe(cluster, now, view);
    view.settled = view.settled && !terminating_.has_unknown();
    if (view.settled != was_settled_) {
        was_settled_ = view.settled;
        log::info(
            view.settled ? "all sidecars have reported what they hold"
                         : "waiting for sidecars to report what they hold",
            {{"unheard", grants_.unheard()}});
    }
    view.peers = peers_.planned(cluster, now);
    return view;
}

void GrantsController::tell_reclaims(const ClusterView& cluster) {
    for (const OverQuotaHolder& holder : find_over_quota_holders(cluster, reclaims_.begun())) {
        tell(holder, EventType::kNormal, "Reclaimed", say_reclaimed(holder));
    }
    for (const OverQuotaHolder& holder :
         find_over_quota_holders(cluster, reclaims_.became_late())) {
        tell(holder, EventType::kWarning, "ReclaimOverdue", say_late(holder));
    }
}

std::optional<EventSubject> GrantsController::subject_of(const OverQuotaHolder& holder) {
    if (is_filler(holder.job.name)) {
        const auto filled = find_filled(holder.job, parts_.cache);
        return filled ? std::optional(control::subject_of(kinds::kDatasets, filled->value.meta))
                      : std::nullopt;
    }
    const auto job = parts_.cache.training_jobs().store().get(holder.job);
    return job ? std::optional(control::subject_of(kinds::kTrainingJobs, job->value.meta))
               : std::nullopt;
}

void GrantsController::tell(
    const OverQuotaHolder& holder, EventType type, const std::string& reason, std::string words) {
    std::optional<EventSubject> subject = subject_of(holder);
    if (!subject) {
        return;
    }
    log::info(
        type == EventType::kWarning ? "bytes are not given back" : "bytes go back",
        {{"object", to_string(holder.job)}, {"reason", reason}, {"message", words}});
    EventNote note;
    note.regarding = *std::move(subject);
    note.type = type;
    note.reason = reason;
    note.action = "Allocate";
    note.note = std::move(words);
    on_change_.event(std::move(note));
}

void GrantsController::tell_changes(const Allocation& before, const Allocation& after) {
    for (const ObjectKey& job : changed_jobs(before, after)) {
        if (const JobAllocation* allocation = after.find(job)) {
            log::info(
                "grant decided",
                {{"object", to_string(job)},
                 {"reason", to_string(allocation->reason)},
                 {"bytes", allocation->granted.count()},
                 {"message", allocation->message}});
        }
        on_change_.job(job);
    }
    for (const auto& [job, profile] : after.profiles) {
        const auto told = before.profiles.find(job);
        if (told == before.profiles.end() || told->second != profile) {
            on_change_.profile(job);
        }
    }
    if (before.plan.charges != after.plan.charges || before.plan.quotas != after.plan.quotas ||
        before.late != after.late) {
        for (const auto& quota : parts_.cache.quotas().store().list()) {
            on_change_.quota(quota->key);
        }
    }
    if (before.view.holdings != after.view.holdings || before.granted != after.granted) {
        for (const auto& pool : parts_.cache.pools().store().list()) {
            on_change_.pool(pool->key);
        }
    }
}

}  // namespace stoker::control
