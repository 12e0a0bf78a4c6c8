#include "operator/controllers/cachepool/node_sweeper.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/grant_book.h"
#include "operator/core/view/node_fitness.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

bool has_ended(const TrainingJob& job) {
    return is_true(job.status.conditions, "Complete") || is_true(job.status.conditions, "Failed");
}

// The namespace of the reported directory: it differs from the pod's only if the pod's job may read
// a Dataset of that namespace. For a deleted Dataset, the pod's own mount names it.
std::string directory_namespace(
    const SidecarReport& report, const DatasetReport& dataset, ClusterCache& cache) {
    const ObjectKey key{report.namespace_name, report.training_job};
    if (const auto job = cache.training_jobs().store().get(key)) {
        for (const ResolvedDataset& it : readable_datasets(job->value, cache).datasets) {
            if (it.uid == dataset.dataset_uid) {
                return it.ns;
            }
        }
    }
    return report.namespace_name;
}

// Whether the pod protects the Dataset's node directory (`guard`) from sweeps. False if the Dataset
// is in another namespace and the pod's job may not read it. A deleted Dataset counts as readable:
// it was readable when the pod started.
bool may_keep(const Pod& pod, const SweepGuard& guard, ClusterCache& cache) {
    if (guard.ns == pod.meta.ns) {
        return true;
    }
    const bool exists = std::ranges::any_of(cache.datasets().store().list(), [&](const auto& it) {
        return it->key.ns == guard.ns && it->value.meta.uid == guard.uid;
    });
    if (!exists) {
        return true;
    }
    const ObjectKey key{pod.meta.ns, value_or_empty(pod.meta.labels, std::string{kJobLabel})};
    const auto job = cache.training_jobs().store().get(key);
    return job && has_dataset(readable_datasets(job->value, cache), guard.uid);
}

void add_guard(
    SweepView& view, const std::string& node, const std::string& ns, const std::string& uid) {
    if (auto guard = guard_of(node, ns + "/" + uid)) {
        view.guards.insert(*std::move(guard));
    }
}

SweepDataset read_dataset(const Dataset& dataset, const SweepLedger& ledger) {
    SweepDataset result;
    result.ns = dataset.meta.ns;
    result.uid = dataset.meta.uid;
    result.last_use = last_use_of(dataset);
    result.retention_seconds = dataset.spec.retention_after_last_use_seconds;
    for (const DatasetPlacement& placement : dataset.status.placements) {
        if (!ledger.is_gone(placement.pool, placement.node, result.uid, result.last_use)) {
            result.holdings.push_back({placement.pool, placement.node, bytes_of(placement.bytes)});
        }
    }
    return result;
}

}  // namespace

NodeSweeper::NodeSweeper(const ControllerParts& parts, std::function<void()> on_swept)
    : parts_(parts),
      on_swept_(std::move(on_swept)),
      watching_since_(parts.clock.wall_now()),
      next_id_(first_id(watching_since_)) {}

void NodeSweeper::note_deleted(const Dataset& dataset) {
    auto deleted = deleted_.lock();
    for (const DatasetPlacement& placement : dataset.status.placements) {
        deleted->at[{placement.pool, placement.node}].insert(dataset.meta.uid);
    }
    deleted->since.emplace(dataset.meta.uid, parts_.clock.wall_now());
    parts_.ledger.forget(dataset.meta.uid);
}

Result<Reconciled> NodeSweeper::reconcile(const ObjectKey& /*key*/) {
    parts_.nodes.forget_silent(parts_.clock.now());
    take_results();
    const SweepPlan plan = plan_sweeps(gather(), parts_.clock.wall_now(), {});
    settle(plan);
    if (std::ranges::any_of(
            plan.finished, [](const SweepRun& run) { return !run.expired.empty(); })) {
        on_swept_();
    }
    for (const NodeSweep& sweep : plan.start) {
        start(sweep);
    }
    return Reconciled{kLookEvery};
}

SweepView NodeSweeper::gather() {
    SweepView view;
    const std::vector<Node> nodes = values_of(parts_.cache.nodes().store().list());
    const NodeProgramView programs = gather_node_programs(parts_.cache, parts_.nodes);
    find_deleted(programs.reports);
    const auto deleted = deleted_.lock()->at;
    for (const auto& pool : parts_.cache.pools().store().list()) {
        const CachePool& value = pool->value;
        if (value.meta.deleting_since || value.spec.host_path.empty()) {
            continue;
        }
        for (const NodeVerdict& it : judge_nodes(value, nodes, programs, parts_.clock.now())) {
            if (it.fitness != NodeFitness::kReady) {
                continue;
            }
            const SweepPlace place{value.meta.name, it.node, value.spec.host_path};
            view.places.push_back(place);
            if (const auto uids = deleted.find({place.pool, place.node}); uids != deleted.end()) {
                view.deleted[place] = uids->second;
            }
        }
    }
    for (const auto& [place, run] : runs_) {
        view.runs.push_back(run);
    }
    gather_datasets(view);
    gather_inline_datasets(view);
    gather_needs(view);
    gather_guards(view, programs.reports);
    view.swept = swept_;
    view.watching_since = watching_since_;
    return view;
}

// Finds directories of deleted Datasets in the reports of node programs: perhaps no sidecar ever
// reported them, because it was silent, lying or absent.
void NodeSweeper::find_deleted(const NodeReports& reports) {
    auto deleted = deleted_.lock();
    const WallTime now = parts_.clock.wall_now();
    std::erase_if(
        deleted->since, [&](const auto& entry) { return now - entry.second > kDeletedFor; });
    for (const auto& [node, report] : reports) {
        for (const PoolState& pool : report->pools) {
            for (const DirectoryUse& use : pool.directories) {
                if (deleted->since.contains(use.dataset_uid)) {
                    deleted->at[{pool.pool, node}].insert(use.dataset_uid);
                }
            }
        }
    }
}

void NodeSweeper::gather_datasets(SweepView& view) const {
    for (const auto& stored : parts_.cache.datasets().store().list()) {
        SweepDataset dataset = read_dataset(stored->value, parts_.ledger);
        for (const auto& job : parts_.cache.training_jobs().store().by_index(
                 index::kDataset, to_string(stored->key))) {
            const bool may = job->key.ns == stored->key.ns ||
                             has_dataset(readable_datasets(job->value, parts_.cache), dataset.uid);
            dataset.in_use = dataset.in_use || (may && !has_ended(job->value));
        }
        view.datasets.push_back(std::move(dataset));
    }
}

// Inline datasets exist as long as a TrainingJob names them.
void NodeSweeper::gather_inline_datasets(SweepView& view) const {
    for (const auto& job : parts_.cache.training_jobs().store().list()) {
        for (const JobDataset& dataset : job->value.spec.datasets) {
            if (dataset.storage_uri) {
                SweepDataset result;
                result.ns = job->value.meta.ns;
                result.uid = inline_dataset_uid(result.ns, dataset);
                result.in_use = !has_ended(job->value);
                view.datasets.push_back(std::move(result));
            }
        }
    }
}

void NodeSweeper::gather_needs(SweepView& view) const {
    for (const Sweep& sweep : parts_.latest.get()->plan.sweeps) {
        view.needs.insert({sweep.pool, sweep.node, sweep.dataset_uid});
    }
}

// Sidecars report what they hold, but may be silent, restarting, or waiting for a leader's lock. So
// mounts of running pods, and mounts that the node program reports, are always kept.
void NodeSweeper::gather_guards(SweepView& view, const NodeReports& reports) const {
    auto pods = parts_.cache.pods().store().list();
    const auto fillers = parts_.cache.filler_pods().store().list();
    pods.insert(pods.end(), fillers.begin(), fillers.end());
    for (const auto& stored : pods) {
        const Pod& pod = stored->value;
        for (const std::string& directory : pod.node_directories) {
            const auto guard = guard_of(pod.node_name, directory);
            if (guard && !has_ended(pod) && may_keep(pod, *guard, parts_.cache)) {
                view.guards.insert(*guard);
            }
        }
    }
    for (const SidecarReport& report : parts_.registry.all()) {
        for (const DatasetReport& dataset : report.datasets) {
            if (report.attached) {
                const std::string ns = directory_namespace(report, dataset, parts_.cache);
                add_guard(view, report.node, ns, dataset.dataset_uid);
            }
        }
    }
    for (const auto& [node, report] : reports) {
        for (const PoolState& pool : report->pools) {
            for (const DirectoryUse& use : pool.directories) {
                if (use.mounted) {
                    add_guard(view, node, use.ns, use.dataset_uid);
                }
            }
        }
    }
}

void NodeSweeper::take_results() {
    for (const SweepResult& result : parts_.nodes.take_results()) {
        const auto entry = std::ranges::find_if(
            runs_, [&](const auto& run) { return run.second.id == result.id; });
        if (entry == runs_.end()) {
            continue;
        }
        const SweepPlace& place = entry->first;
        if (result.succeeded) {
            entry->second.phase = SweepPhase::kSucceeded;
            log::info(
                "node swept",
                {{"node", place.node}, {"pool", place.pool}, {"removed", result.removed}});
        } else {
            entry->second.phase = SweepPhase::kFailed;
            ++counts_.lock()->failed;
            log::warning(
                "node is not swept",
                {{"node", place.node}, {"pool", place.pool}, {"error", result.message}});
        }
    }
}

void NodeSweeper::settle(const SweepPlan& plan) {
    if (!plan.refused.empty()) {
        log::warning("nodes cannot be swept", {{"reason", plan.refused}});
    }
    auto counts = counts_.lock();
    auto deleted = deleted_.lock();
    for (const SweepRun& run : plan.finished) {
        ++counts->succeeded;
        swept_[run.place] = run.began_at;
        auto& of_deleted = deleted->at[{run.place.pool, run.place.node}];
        for (const std::string& uid : run.expired) {
            deleted->since.erase(uid);  // the measurement may predate the sweep
            if (of_deleted.erase(uid) == 0) {
                parts_.ledger.note(run.place.pool, run.place.node, uid, run.began_at);
            }
        }
        runs_.erase(run.place);
    }
    for (const SweepRun& run : plan.given_up) {
        ++counts->failed;
        log::warning(
            "node is not swept",
            {{"node", run.place.node},
             {"pool", run.place.pool},
             {"error", "its node program did not confirm the sweep"}});
        parts_.nodes.withdraw_sweep(run.place.node, run.id);
        runs_.erase(run.place);
    }
    for (const SweepRun& run : plan.forgotten) {
        runs_.erase(run.place);
    }
}

void NodeSweeper::start(const NodeSweep& sweep) {
    SweepRun run;
    run.place = sweep.place;
    run.id = fmt::format("{:016x}", next_id_++);
    run.expired = sweep.expired;
    run.began_at = parts_.clock.wall_now();
    parts_.nodes.order_sweep(
        sweep.place.node, {run.id, sweep.place.pool, sweep.place.path, sweep.kept, sweep.expired});
    runs_.insert_or_assign(sweep.place, std::move(run));
}

}  // namespace stoker::control
