#include "operator/core/sweep/plan_sweeps.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "common/base/saturating.h"

namespace stoker::control {

namespace {

using Due = std::set<std::pair<std::string, std::string>>;  // namespace, uid

// Limit of a DNS label, which namespaces and uids are; a longer name cannot belong to a dataset.
constexpr std::size_t kNameBytesMax = 63;

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
           elapsed_between(dataset.last_use, now) >= saturated_seconds(*dataset.retention_seconds);
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

// Namespaces and uids contain only these characters. They are path components on the nodes.
bool is_plain(std::string_view name) {
    return !name.empty() && name.size() <= kNameBytesMax && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
           });
}

// Uids of deleted Datasets whose bytes can be removed now. Uids are never reused.
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

// Keeps every existing dataset that is not due, and every dataset with a sidecar.
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

// Why nothing can be swept: the name of a dataset that must be kept has characters that an order
// cannot carry. Empty: no such name.
std::string refusal(const SweepView& view) {
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

// Nodes and places with runs in progress, and places whose retry is not due yet.
struct Busy {
    std::set<std::string> nodes;
    std::set<SweepPlace> places;
    std::size_t running = 0;
};

Busy settle_runs(const SweepView& view, WallTime now, const SweepLimits& limits, SweepPlan& plan) {
    Busy busy;
    for (const SweepRun& run : view.runs) {
        const Duration age = now - run.began_at;
        busy.places.insert(run.place);
        if (run.phase == SweepPhase::kSucceeded) {
            plan.finished.push_back(run);
        } else if (run.phase == SweepPhase::kFailed) {
            if (age > limits.retry_after) {
                plan.forgotten.push_back(run);
            }
        } else if (age > limits.patience) {
            plan.given_up.push_back(run);
        } else {
            busy.nodes.insert(run.place.node);
            ++busy.running;
        }
    }
    return busy;
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
    Busy busy = settle_runs(view, now, limits, plan);
    plan.refused = refusal(view);
    if (!plan.refused.empty()) {
        return plan;
    }
    std::vector<SweepPlace> places = view.places;
    std::sort(places.begin(), places.end());
    for (const SweepPlace& place : places) {
        if (busy.running >= limits.runs_at_once) {
            break;
        }
        const Due due = due_at(place, view, now);
        if (busy.places.contains(place) || busy.nodes.contains(place.node) ||
            !is_due(place, view, due, now, limits)) {
            continue;
        }
        NodeSweep sweep = make_sweep(place, view, due);
        if (sweep.kept.size() + sweep.expired.size() > limits.kept_max) {
            plan.refused = fmt::format("there are more than {} datasets", limits.kept_max);
            continue;
        }
        plan.start.push_back(std::move(sweep));
        busy.nodes.insert(place.node);
        ++busy.running;
    }
    return plan;
}

}  // namespace stoker::control
