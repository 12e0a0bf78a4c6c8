#include "operator/controllers/grants/controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"

namespace stoker::control {

namespace {

// Bytes promised in each pool. A grant names no pool; the job that it was made for does.
std::map<std::string, Bytes> granted_by_pool(
    const ClusterView& cluster, const std::vector<AgentGrant>& grants) {
    std::map<std::string, std::string> pool_of;  // by dataset uid
    for (const JobUse& use : cluster.jobs) {
        for (const ResolvedDataset& dataset : use.datasets.datasets) {
            if (use.is_active()) {
                pool_of[dataset.uid] = use.pool.name;
            }
        }
    }
    std::map<std::string, Bytes> granted;
    for (const AgentGrant& grant : grants) {
        granted[pool_of[grant.dataset_uid]] += grant.resident_bytes;
    }
    return granted;
}

std::optional<WallTime> newest_report(const std::vector<AgentReport>& reports) {
    std::optional<WallTime> newest;
    for (const AgentReport& report : reports) {
        newest = std::max(newest, std::optional(report.received_wall));
    }
    return newest;
}

// Those that are in one list only, or differ.
template <class T, class Key>
std::set<Key> changed_keys(const std::vector<T>& before, const std::vector<T>& after, Key T::*key) {
    std::set<Key> changed;
    const auto add_missing = [&](const std::vector<T>& from, const std::vector<T>& in) {
        for (const T& item : from) {
            if (std::find(in.begin(), in.end(), item) == in.end()) {
                changed.insert(item.*key);
            }
        }
    };
    add_missing(before, after);
    add_missing(after, before);
    return changed;
}

// Differs from the ids of an operator before us.
std::uint64_t first_probe_id(WallTime now) {
    const auto since = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
    constexpr unsigned kIdsPerSecondBits = 20;
    return static_cast<std::uint64_t>(since.count()) << kIdsPerSecondBits;
}

}  // namespace

GrantsController::GrantsController(
    ClusterCache& cache,
    AgentRegistry& registry,
    AllocationBoard& board,
    const Clock& clock,
    std::uint32_t grant_seconds,
    OnChange on_change)
    : cache_(cache),
      registry_(registry),
      board_(board),
      clock_(clock),
      grant_seconds_(grant_seconds),
      on_change_(std::move(on_change)),
      profiles_(first_probe_id(clock.wall_now())) {}

Result<Reconciled> GrantsController::reconcile() {
    const TimePoint now = clock_.now();
    const Duration since = now - decided_at_;
    if (decided_at_ != TimePoint{} && since < kNotMoreOftenThan) {
        return Reconciled{kNotMoreOftenThan - since};
    }
    decided_at_ = now;
    registry_.forget_silent(now);
    const AllocationBoard::Snapshot before = board_.get();
    ClusterView cluster = gather_cluster(cache_, registry_, before->plan.grants, grant_seconds_);
    profiles_.update(cluster, before->plan, {now, clock_.wall_now()});
    registry_.ask(profiles_.probes());
    cluster.profiles = profiles_.profiles();
    Allocation after;
    after.decided_at = clock_.wall_now();
    after.view = view_allocation(cluster, {now, *after.decided_at});
    after.profiles = cluster.profiles;
    after.reports_absurd = profiles_.refused();
    after.plan = plan_allocation(after.view);
    after.holdings = after.view.holdings;
    after.granted = granted_by_pool(cluster, after.plan.grants);
    after.sampled_at = newest_report(cluster.reports);
    registry_.publish(after.plan.grants, now);
    board_.put(after);
    tell_changes(*before, after);
    // A third of the validity: a grant is repeated twice before it runs out.
    return Reconciled{std::chrono::seconds{grant_seconds_} / 3};
}

void GrantsController::tell_changes(const Allocation& before, const Allocation& after) {
    for (const ObjectKey& job :
         changed_keys(before.plan.jobs, after.plan.jobs, &JobAllocation::job)) {
        for (const JobAllocation& allocation : after.plan.jobs) {
            if (allocation.job == job) {
                log::info(
                    "grant decided",
                    {{"object", to_string(job)},
                     {"reason", to_string(allocation.reason)},
                     {"bytes", allocation.granted.count()},
                     {"message", allocation.message}});
            }
        }
        on_change_.job(job);
    }
    for (const auto& [job, profile] : after.profiles) {
        const auto told = before.profiles.find(job);
        if (told == before.profiles.end() || told->second != profile) {
            on_change_.job(job);
        }
    }
    if (before.plan.charges != after.plan.charges || before.plan.quotas != after.plan.quotas) {
        for (const auto& quota : cache_.quotas().store().list()) {
            on_change_.quota(quota->key);
        }
    }
    if (before.holdings != after.holdings || before.granted != after.granted) {
        for (const auto& pool : cache_.pools().store().list()) {
            on_change_.pool(pool->key);
        }
    }
}

}  // namespace stoker::control
