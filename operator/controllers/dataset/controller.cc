#include "operator/controllers/dataset/controller.h"

#include <algorithm>

#include "operator/controllers/gather.h"
#include "operator/core/spec/packing.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

namespace {

// The last report of an ended sidecar may still be fresh when its node directory is swept: removes
// the swept bytes from it. If another sidecar has led the directory since (`is_refilled`), the
// report no longer counts as a leader's.
void drop_swept_bytes(DatasetReport& dataset, bool is_refilled) {
    dataset.leader = dataset.leader && !is_refilled;
    dataset.resident_bytes = Bytes::zero();
    dataset.resident_samples = 0;
}

void forget_what_was_swept(
    std::vector<SidecarReport>& reports,
    const std::string& pool,
    const std::string& uid,
    SweepLedger& ledger) {
    for (SidecarReport& report : reports) {
        // Whole seconds, as in the API server's timestamp of the sweeping pod.
        const auto told_at = std::chrono::floor<std::chrono::seconds>(report.received_wall);
        for (DatasetReport& dataset : report.datasets) {
            if (dataset.dataset_uid != uid) {
                continue;
            }
            if (report.attached && has_counted(dataset)) {
                ledger.note_leader(pool, report.node, uid, told_at);
            } else if (!report.attached && ledger.is_gone(pool, report.node, uid, told_at)) {
                drop_swept_bytes(dataset, ledger.is_refilled(pool, report.node, uid));
            }
        }
    }
}

// The jobs, active or not, that name the dataset and may read it.
std::vector<JobUse> find_users(const Dataset& dataset, ClusterCache& cache) {
    std::vector<JobUse> result;
    for (const auto& job :
         cache.training_jobs().store().by_index(index::kDataset, to_string(dataset.meta.key()))) {
        JobUse use = gather_use(shared(job), cache);
        if (has_dataset(use.datasets, dataset.meta.uid)) {
            result.push_back(std::move(use));
        }
    }
    return result;
}

Duration look_again(const DatasetView& view) {
    const bool waiting =
        !std::ranges::all_of(view.fillers, [](const FillerState& it) { return it.ready; });
    return waiting ? DiagnosisFinder::kLookEvery : kReportAgeMax;
}

}  // namespace

Result<Reconciled> DatasetController::reconcile(const ObjectKey& key) {
    const auto stored = parts_.cache.datasets().store().get(key);
    if (!stored) {
        status_.forget(key);
        fillers_.forget(key);
        packing_.forget(key);
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.datasets().store(), key) ||
        !fillers_.has_seen_own_writes(key) || !packing_.has_seen_own_writes(key)) {
        return Reconciled{kCacheBehind};
    }
    const std::vector<JobUse> users = find_users(stored->value, parts_.cache);
    const FillerKeeper::Look fillers = fillers_.look(stored->value, users);
    DatasetView view = gather(stored->value, users);
    view.fillers = fillers.states;
    const PackingKeeper::Look packing = packing_.look(stored->value);
    view.packing = packing.outcome;
    Dataset after = view.dataset;
    after.status = summarize_dataset(view, {parts_.clock.now(), parts_.clock.wall_now()});
    STOKER_TRY(const StatusWrite write, status_.write(view.dataset, after, false));
    if (write.outcome == StatusOutcome::kWritten) {
        tell(view.dataset, after);
    }
    STOKER_TRY(const std::optional<Duration> again, fillers_.act(stored->value, fillers.plan));
    STOKER_TRY(const std::optional<Duration> pack, packing_.act(stored->value, packing.plan));
    const std::optional<Duration> next =
        earliest(earliest(again, pack), earliest(write.again_after, packing.look_again));
    // No event tells of silent sidecars or of pods that do not start, so look again after a while.
    return view.users.empty() ? Reconciled{next} : Reconciled{earliest(next, look_again(view))};
}

void DatasetController::tell_of_packing(const Dataset& before, const Dataset& after) {
    const Condition* was = find_condition(before.status.conditions, kPacked);
    const Condition* is = find_condition(after.status.conditions, kPacked);
    const bool is_news =
        is != nullptr && (was == nullptr || was->reason != is->reason) &&
        (is->reason == "Packed" || is->reason == "Failed" || is->reason == "Refused");
    if (!is_news) {
        return;
    }
    EventNote note;
    note.regarding = subject_of(kinds::kDatasets, after.meta);
    note.type = is->reason == "Packed" ? EventType::kNormal : EventType::kWarning;
    note.reason = is->reason == "Packed" ? "Packed" : "Packing" + is->reason;
    note.action = "Pack";
    note.note = is->message;
    parts_.events.record(std::move(note));
}

void DatasetController::tell(const Dataset& before, const Dataset& after) {
    tell_of_packing(before, after);
    const std::string type{kFillersReady};
    const Condition* was = find_condition(before.status.conditions, type);
    const Condition* is = find_condition(after.status.conditions, type);
    if (is == nullptr || is->reason != "Refused" ||
        (was != nullptr && was->message == is->message)) {
        return;
    }
    EventNote note;
    note.regarding = subject_of(kinds::kDatasets, after.meta);
    note.type = EventType::kWarning;
    note.reason = "FillerRefused";
    note.action = "Fill";
    note.note = is->message;
    parts_.events.record(std::move(note));
}

// Jobs that ended are not users, but their last reports count while they are fresh.
void DatasetController::add_user(const JobUse& use, DatasetView& view) {
    std::vector<SidecarReport> reports = reports_on_datasets(use, parts_.registry);
    forget_what_was_swept(reports, use.pool.name, view.dataset.meta.uid, parts_.ledger);
    if (use.is_active() || !reports.empty()) {
        view.users.push_back(use);
        view.reports.insert(view.reports.end(), reports.begin(), reports.end());
    }
}

DatasetView DatasetController::gather(const Dataset& dataset, const std::vector<JobUse>& users) {
    DatasetView view;
    view.dataset = dataset;
    view.peers = parts_.registry.peer_group(dataset.meta.uid);
    for (const JobUse& use : users) {
        add_user(use, view);
    }
    for (const JobUse& use : gather_fillers(dataset, parts_.cache)) {
        add_user(use, view);
    }
    const LatestAllocation::Snapshot allocation = parts_.latest.get();
    allocation->add_holdings(dataset.meta.uid, view.holdings);
    add_places(view);
    return view;
}

// Only nodes that the Dataset is on, because a cluster may have thousands of nodes.
void DatasetController::add_places(DatasetView& view) {
    const DatasetStatus& status = view.dataset.status;
    const ObjectMeta& meta = view.dataset.meta;
    const WallTime last_heard = std::max(status.sampled_at.value_or(WallTime{}), meta.created_at);
    const auto add_node = [&](const std::string& node) {
        if (!view.nodes.contains(node) && parts_.cache.nodes().store().get({"", node})) {
            view.nodes.insert(node);
        }
    };
    const auto add = [&](const std::string& pool, const std::string& node) {
        add_node(node);
        if (parts_.ledger.is_gone(pool, node, meta.uid, last_heard)) {
            view.swept.insert({pool, node});
        }
    };
    for (const DatasetPlacement& placement : status.placements) {
        add(placement.pool, placement.node);
    }
    for (const Holding& holding : view.holdings) {
        add(holding.pool, holding.node);
    }
    for (const SidecarReport& report : view.reports) {
        add_node(report.node);
    }
}

}  // namespace stoker::control
