#include "operator/core/status/guest_status.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "operator/core/view/guests.h"

namespace stoker::control {

bool waits_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals* sum) {
    if (!is_guest(view.job, dataset) || sum == nullptr || sum->error.empty() ||
        sum->state == ManifestState::kReady) {
        return false;
    }
    const auto fillers = view.fillers.find(dataset.uid);
    const bool starting =
        fillers != view.fillers.end() && fillers->second.status != ConditionStatus::kTrue;
    return starting || sum->state != ManifestState::kFailed;
}

Condition wait_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals& sum) {
    const auto fillers = view.fillers.find(dataset.uid);
    return fails(
        "WaitingForOwner",
        fmt::format(
            "Dataset {} waits for a sidecar of namespace {}: {}{}{}",
            dataset.name,
            dataset.ns,
            sum.error,
            fillers == view.fillers.end() ? "" : "; " + fillers->second.message,
            tell_credentials(dataset, view.job.meta.ns)));
}

Bytes resident_bytes(
    const TrainingJobView& view, const std::string& uid, const DatasetTotals& told) {
    const bool foreign = std::ranges::any_of(view.datasets.datasets, [&](const auto& dataset) {
        return dataset.uid == uid && is_guest(view.job, dataset);
    });
    if (!foreign) {
        return told.resident_bytes();
    }
    const std::set<std::string> nodes = live_nodes(view.pods);
    Bytes result{};
    for (const Holding& holding : view.holdings) {
        if (nodes.contains(holding.node) && holding.pool == view.pool.name &&
            holding.dataset_uid == uid) {
            result += holding.resident;
        }
    }
    return result;
}

}  // namespace stoker::control
