#include "operator/core/plan_sweeps.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "operator/core/pod_name_hash.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

using Due = std::set<std::pair<std::string, std::string>>;  // namespace, uid

enum class Fate { kLeave, kFinish, kGiveUp, kDrop };

Fate fate_of(const SweepPod& pod, WallTime now, const SweepLimits& limits) {
    const Duration age = now - pod.created_at;
    switch (pod.phase) {
        case PodPhase::kSucceeded:
            return Fate::kFinish;
        case PodPhase::kFailed:
            return age > limits.retry_after ? Fate::kDrop : Fate::kLeave;
        default:
            return age > limits.patience ? Fate::kGiveUp : Fate::kLeave;
    }
}

Bytes bytes_at(const SweepDataset& dataset, const SweepPlace& place) {
    Bytes sum{};
    for (const SweepHolding& holding : dataset.holdings) {
        if (holding.pool == place.pool && holding.node == place.node) {
            sum += holding.bytes;
        }
    }
    return sum;
}

bool is_idle(const SweepDataset& dataset, const SweepPlace& place, const SweepView& view) {
    return !dataset.in_use && !view.guards.contains({place.node, dataset.ns, dataset.uid});
}

bool is_over(const SweepDataset& dataset, WallTime now) {
    return dataset.retention_seconds &&
           now - dataset.last_use >= seconds{*dataset.retention_seconds};
}

Due due_at(const SweepPlace& place, const SweepView& view, WallTime now) {
    Due due;
    for (const SweepDataset& dataset : view.datasets) {
        const bool idle = is_idle(dataset, place, view) && bytes_at(dataset, place) > Bytes::zero();
        const bool needed = view.needs.contains({place.pool, place.node, dataset.uid});
        if (idle && (needed || is_over(dataset, now))) {
            due.emplace(dataset.ns, dataset.uid);
        }
    }
    return due;
}

// Only these characters stand in namespaces and uids; in find's -path any other could be a pattern.
bool is_plain(const std::string& name) {
    return !name.empty() && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
           });
}

// Uids of deleted Datasets whose bytes can go now. A uid never comes back.
std::vector<std::string> deleted_at(const SweepPlace& place, const SweepView& view) {
    const auto found = view.deleted.find(place);
    if (found == view.deleted.end()) {
        return {};
    }
    std::set<std::string> uids = found->second;
    std::erase_if(uids, [](const std::string& uid) { return !is_plain(uid); });
    for (const SweepDataset& dataset : view.datasets) {
        uids.erase(dataset.uid);
    }
    for (const SweepGuard& guard : view.guards) {
        if (guard.node == place.node) {
            uids.erase(guard.uid);
        }
    }
    return {uids.begin(), uids.end()};
}

// Everything that exists but what is due, and everything with a sidecar.
NodeSweep make_sweep(const SweepPlace& place, const SweepView& view, const Due& due) {
    NodeSweep sweep{place, {}, deleted_at(place, view)};
    std::set<std::string> kept;
    for (const SweepDataset& dataset : view.datasets) {
        if (due.contains({dataset.ns, dataset.uid})) {
            sweep.expired.push_back(dataset.uid);
        } else {
            kept.insert(dataset.ns + "/" + dataset.uid);
        }
    }
    for (const SweepGuard& guard : view.guards) {
        if (guard.node == place.node) {
            kept.insert(guard.ns + "/" + guard.uid);
        }
    }
    sweep.kept.assign(kept.begin(), kept.end());
    std::sort(sweep.expired.begin(), sweep.expired.end());
    return sweep;
}

bool is_due(
    const SweepPlace& place,
    const SweepView& view,
    const Due& due,
    WallTime now,
    const SweepLimits& limits) {
    const auto swept = view.swept.find(place);
    const WallTime since = swept == view.swept.end() ? view.watching_since : swept->second;
    return !due.empty() || !deleted_at(place, view).empty() || now - since >= limits.every;
}

std::string refusal(const SweepView& view, const SweepLimits& limits) {
    if (view.datasets.size() + view.guards.size() > limits.kept_max) {
        return fmt::format("there are more than {} datasets", limits.kept_max);
    }
    for (const SweepDataset& dataset : view.datasets) {
        if (!is_plain(dataset.ns) || !is_plain(dataset.uid)) {
            return fmt::format("a dataset's uid is not plain: {}/{}", dataset.ns, dataset.uid);
        }
    }
    for (const SweepGuard& guard : view.guards) {
        if (!is_plain(guard.ns) || !is_plain(guard.uid)) {
            return fmt::format("a directory's name is not plain: {}/{}", guard.ns, guard.uid);
        }
    }
    return {};
}

// Sorts the pods that are there; how many run, and where.
std::size_t settle_pods(
    const SweepView& view,
    WallTime now,
    const SweepLimits& limits,
    SweepPlan& plan,
    std::set<SweepPlace>& busy) {
    std::size_t running = 0;
    for (const SweepPod& pod : view.pods) {
        busy.insert(pod.place);
        if (pod.deleting) {
            ++running;
            continue;
        }
        const Fate fate = fate_of(pod, now, limits);
        if (fate == Fate::kFinish) {
            plan.finished.push_back(pod);
        } else if (fate == Fate::kGiveUp || pod.phase == PodPhase::kFailed) {
            plan.failed.push_back(pod.place);
        }
        if (fate == Fate::kLeave) {
            running += pod.phase == PodPhase::kFailed ? 0 : 1;
        } else {
            plan.remove.push_back(pod.key);
        }
    }
    return running;
}

}  // namespace

std::optional<SweepGuard> guard_of(const std::string& node, const std::string& node_directory) {
    const std::size_t slash = node_directory.find('/');
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    SweepGuard guard{node, node_directory.substr(0, slash), node_directory.substr(slash + 1)};
    const bool plain = is_plain(guard.ns) && is_plain(guard.uid);
    return plain ? std::optional(std::move(guard)) : std::nullopt;
}

SweepPlan plan_sweeps(const SweepView& view, WallTime now, const SweepLimits& limits) {
    SweepPlan plan;
    std::set<SweepPlace> busy;
    std::size_t running = settle_pods(view, now, limits, plan, busy);
    plan.refused = refusal(view, limits);
    if (!plan.refused.empty()) {
        return plan;
    }
    std::vector<SweepPlace> places = view.places;
    std::sort(places.begin(), places.end());
    for (const SweepPlace& place : places) {
        if (running >= limits.pods_at_once) {
            break;
        }
        const Due due = due_at(place, view, now);
        if (!busy.contains(place) && is_due(place, view, due, now, limits)) {
            plan.create.push_back(make_sweep(place, view, due));
            ++running;
        }
    }
    return plan;
}

std::string sweep_pod_name(const SweepPlace& place) {
    return pod_name_of("stoker-sweep", {place.pool, place.node, place.node_uid, place.host_path});
}

}  // namespace stoker::control
