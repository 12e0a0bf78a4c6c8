#include "operator/controllers/cachepool/node_sweeper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/build_job.h"
#include "operator/core/cluster_view.h"
#include "operator/core/find_places.h"
#include "operator/core/resolve.h"

namespace stoker::control {

namespace {

bool has_ended(const TrainingJob& job) {
    return is_true(job.status.conditions, "Complete") || is_true(job.status.conditions, "Failed");
}

// The namespace whose directory a report is about: another one than the pod's only where its job
// may read a Dataset of that one. Of a Dataset that is deleted the pod's own mount says it.
std::string directory_namespace(
    const AgentReport& report, const DatasetReport& dataset, ClusterCache& cache) {
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

// A pod cannot keep a Dataset of another namespace that its job may not read. One that is deleted
// was readable when the pod began.
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

SweepDataset read_dataset(const Dataset& dataset, const SweepLedger& ledger) {
    SweepDataset result;
    result.ns = dataset.meta.ns;
    result.uid = dataset.meta.uid;
    result.last_use = last_use_of(dataset);
    result.retention_seconds = dataset.spec.retention_after_last_use_seconds;
    for (const DatasetPlacement& placement : dataset.status.placements) {
        if (!ledger.is_gone(placement.pool, placement.node, result.uid, result.last_use)) {
            result.holdings.push_back(
                {placement.pool,
                 placement.node,
                 Bytes{static_cast<std::uint64_t>(placement.bytes)}});
        }
    }
    return result;
}

}  // namespace

NodeSweeper::NodeSweeper(Parts parts, NodePodSettings settings, std::function<void()> on_swept)
    : parts_(parts),
      settings_(std::move(settings)),
      on_swept_(std::move(on_swept)),
      watching_since_(parts.clock.wall_now()) {}

void NodeSweeper::note_deleted(const Dataset& dataset) {
    auto deleted = deleted_.lock();
    for (const DatasetPlacement& placement : dataset.status.placements) {
        (*deleted)[{placement.pool, placement.node}].insert(dataset.meta.uid);
    }
    parts_.ledger.forget(dataset.meta.uid);
}

Result<Reconciled> NodeSweeper::reconcile() {
    const SweepPlan plan = plan_sweeps(gather(), parts_.clock.wall_now(), {});
    settle(plan);
    if (std::any_of(plan.finished.begin(), plan.finished.end(), [](const SweepPod& pod) {
            return !pod.expired.empty();
        })) {
        on_swept_();
    }
    STOKER_TRY_VOID(apply(plan));
    return Reconciled{kLookEvery};
}

SweepView NodeSweeper::gather() {
    SweepView view;
    const auto deleted = *deleted_.lock();
    const auto nodes = parts_.cache.nodes().store().list();
    for (const auto& pool : parts_.cache.pools().store().list()) {
        const CachePool& value = pool->value;
        if (value.meta.deleting_since || value.spec.host_path.empty()) {
            continue;
        }
        for (const auto& node : nodes) {
            const ObjectMeta& meta = node->value.meta;
            if (!node->value.ready || !matches(value.spec.node_selector, meta.labels)) {
                continue;
            }
            const SweepPlace place{value.meta.name, meta.name, meta.uid, value.spec.host_path};
            view.places.push_back(place);
            if (const auto uids = deleted.find({place.pool, place.node}); uids != deleted.end()) {
                view.deleted[place] = uids->second;
            }
        }
    }
    for (const auto& pod : parts_.cache.node_pods().store().list()) {
        if (is_node_pod(pod->value, kSweepComponent)) {
            view.pods.push_back(read_sweep_pod(pod->value));
        }
    }
    gather_datasets(view);
    gather_inline_datasets(view);
    gather_needs(view);
    gather_guards(view);
    view.swept = swept_;
    view.watching_since = watching_since_;
    return view;
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

// They live as long as a TrainingJob names them.
void NodeSweeper::gather_inline_datasets(SweepView& view) const {
    for (const auto& job : parts_.cache.training_jobs().store().list()) {
        for (const JobDataset& dataset : job->value.spec.datasets) {
            if (dataset.storage_uri) {
                SweepDataset result;
                result.ns = job->value.meta.ns;
                result.uid = inline_dataset_uid(result.ns, *dataset.storage_uri);
                result.in_use = !has_ended(job->value);
                view.datasets.push_back(std::move(result));
            }
        }
    }
}

void NodeSweeper::gather_needs(SweepView& view) const {
    for (const Sweep& sweep : parts_.board.get()->plan.sweeps) {
        view.needs.insert({sweep.pool, sweep.node, sweep.dataset_uid});
    }
}

// Sidecars say what they hold; but they may be silent, restarting, or waiting for a leader's lock.
// What a pod that has not ended mounts stays in any case.
void NodeSweeper::gather_guards(SweepView& view) const {
    for (const auto& stored : parts_.cache.pods().store().list()) {
        const Pod& pod = stored->value;
        if (has_ended(pod)) {
            continue;
        }
        for (const std::string& directory : pod.node_directories) {
            const auto guard = guard_of(pod.node_name, directory);
            if (guard && may_keep(pod, *guard, parts_.cache)) {
                view.guards.insert(*guard);
            }
        }
    }
    for (const AgentReport& report : parts_.registry.all()) {
        for (const DatasetReport& dataset : report.datasets) {
            if (report.attached) {
                view.guards.insert(
                    {report.node,
                     directory_namespace(report, dataset, parts_.cache),
                     dataset.dataset_uid});
            }
        }
    }
}

void NodeSweeper::settle(const SweepPlan& plan) {
    if (!plan.refused.empty()) {
        log::warning("nodes cannot be swept", {{"reason", plan.refused}});
    }
    auto counts = counts_.lock();
    auto deleted = deleted_.lock();
    for (const SweepPod& pod : plan.finished) {
        ++counts->succeeded;
        swept_[pod.place] = pod.created_at;
        auto& of_deleted = (*deleted)[{pod.place.pool, pod.place.node}];
        for (const std::string& uid : pod.expired) {
            if (of_deleted.erase(uid) == 0) {
                parts_.ledger.note(pod.place.pool, pod.place.node, uid, pod.created_at);
            }
        }
        log::info("node swept", {{"node", pod.place.node}, {"pool", pod.place.pool}});
    }
    for (const SweepPlace& place : plan.failed) {
        ++counts->failed;
        log::warning(
            "node is not swept",
            {{"node", place.node}, {"pool", place.pool}, {"pod", sweep_pod_name(place)}});
    }
}

Status NodeSweeper::apply(const SweepPlan& plan) {
    for (const ObjectKey& key : plan.remove) {
        STOKER_TRY_VOID(parts_.client.remove(kinds::kPods, key, {}));
    }
    if (!plan.create.empty()) {
        STOKER_TRY_VOID(owner_.learn(parts_.client, {settings_.ns, settings_.own_pod}));
    }
    for (const NodeSweep& sweep : plan.create) {
        const Result<Object> made = parts_.client.create(
            kinds::kPods, settings_.ns, build_sweep_pod(sweep, settings_, owner_.get()));
        // It is there from a try whose answer was lost.
        if (!made && made.error().code != ErrorCode::kAlreadyExists) {
            return fail(made.error());
        }
    }
    return {};
}

}  // namespace stoker::control
