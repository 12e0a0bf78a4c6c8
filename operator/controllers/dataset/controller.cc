#include "operator/controllers/dataset/controller.h"

#include <algorithm>

#include "operator/controllers/gather.h"
#include "operator/core/training_job_view.h"

namespace stoker::control {

namespace {

constexpr Duration kCacheBehind = std::chrono::milliseconds{200};

DatasetUser user_of(const JobUse& use) {
    DatasetUser user;
    user.training_job_uid = use.job.meta.uid;
    user.pool = use.pool.name;
    const Condition* running = find_condition(use.job.status.conditions, "Running");
    if (running != nullptr && running->status == ConditionStatus::kTrue) {
        user.running_since = running->last_transition;
    }
    return user;
}

// What a sidecar that has ended said last is still fresh when its directory is swept.
void forget_what_was_swept(
    std::vector<AgentReport>& reports,
    const std::string& pool,
    const std::string& uid,
    const SweepLedger& ledger) {
    for (AgentReport& report : reports) {
        // To the second, as the API server dates the pod that sweeps.
        const auto told_at = std::chrono::floor<std::chrono::seconds>(report.received_wall);
        if (report.attached || !ledger.is_gone(pool, report.node, uid, told_at)) {
            continue;
        }
        for (DatasetReport& dataset : report.datasets) {
            if (dataset.dataset_uid == uid) {
                dataset.resident_bytes = Bytes::zero();
                dataset.resident_samples = 0;
            }
        }
    }
}

}  // namespace

DatasetController::DatasetController(Parts parts)
    : parts_(parts),
      status_(parts.client, kinds::kDatasets, parts.clock) {}

Result<Reconciled> DatasetController::reconcile(
    const ObjectKey& key, const std::stop_token& /*stop*/) {
    const auto stored = parts_.cache.datasets().store().get(key);
    if (!stored) {
        status_.forget(key);
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.datasets().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    const DatasetView view = gather(stored->value);
    Dataset after = view.dataset;
    after.status = summarize_dataset(view, {parts_.clock.now(), parts_.clock.wall_now()});
    STOKER_TRY(const StatusWrite write, status_.write(view.dataset, after, false));
    if (write.again_after) {
        return Reconciled{write.again_after};
    }
    // Silence makes no event of its own.
    return view.users.empty() ? Reconciled{} : Reconciled{kReportAgeMax};
}

// Jobs that ended are no users any more, but what they reported last still counts while it is
// fresh.
DatasetView DatasetController::gather(const Dataset& dataset) {
    DatasetView view;
    view.dataset = dataset;
    for (const auto& job : parts_.cache.training_jobs().store().by_index(
             index::kDataset, to_string(dataset.meta.key()))) {
        const JobUse use = gather_use(job->value, parts_.cache);
        if (!has_dataset(use.datasets, dataset.meta.uid)) {
            continue;  // named by a job that may not use it
        }
        std::vector<AgentReport> reports = believable_reports(use, parts_.registry);
        forget_what_was_swept(reports, use.pool.name, dataset.meta.uid, parts_.ledger);
        if (!use.is_active() && reports.empty()) {
            continue;
        }
        view.users.push_back(user_of(use));
        view.reports.insert(view.reports.end(), reports.begin(), reports.end());
    }
    for (const auto& node : parts_.cache.nodes().store().list()) {
        view.nodes.insert(node->value.meta.name);
    }
    const DatasetStatus& status = dataset.status;
    const WallTime last_heard =
        std::max(status.sampled_at.value_or(WallTime{}), dataset.meta.created_at);
    for (const DatasetPlacement& placement : status.placements) {
        if (parts_.ledger.is_gone(placement.pool, placement.node, dataset.meta.uid, last_heard)) {
            view.swept.insert({placement.pool, placement.node});
        }
    }
    return view;
}

}  // namespace stoker::control
