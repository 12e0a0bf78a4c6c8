#include "operator/core/lifecycle/pin_hold.h"

#include <algorithm>

#include "operator/core/lifecycle/attempts.h"
#include "operator/core/view/guests.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

const DatasetReport* find_report(
    const TrainingJobView& view, const Pod& pod, const std::string& uid, const Moment& now) {
    for (const SidecarReport& report : view.reports) {
        const auto found = std::ranges::find(report.datasets, uid, &DatasetReport::dataset_uid);
        if (report.pod == pod.meta.name && is_fresh(report, now) &&
            found != report.datasets.end()) {
            return &*found;
        }
    }
    return nullptr;
}

// Whether the sidecar has no peer server. A sidecar that leads, or that has the manifest, knows the
// address of a peer server if there is one, and reports it.
bool has_no_peers(const DatasetReport& report) {
    return report.peer_address.empty() &&
           (report.leader || report.manifest_state == ManifestState::kReady);
}

bool is_complete(
    const TrainingJobView& view,
    std::int64_t attempt,
    const std::string& uid,
    const PeerGroup& group,
    const Moment& now) {
    std::int64_t placed = 0;
    const std::string job = job_name(view.job, attempt);
    for (const Pod& pod : view.pods) {
        if (job_name_of(pod) != job || has_ended(pod) || pod.node_name.empty()) {
            continue;
        }
        ++placed;
        const DatasetReport* report = find_report(view, pod, uid, now);
        const bool is_member =
            std::ranges::count(group.members, pod.node_name, &PeerMember::node) > 0;
        if (!is_member && (report == nullptr || !has_no_peers(*report))) {
            return false;
        }
    }
    return placed >= view.job.spec.trainer.node_count;
}

bool gives_address(const TrainingJobView& view, const std::string& uid, const Moment& now) {
    return std::ranges::any_of(view.reports, [&](const SidecarReport& report) {
        return is_fresh(report, now) &&
               std::ranges::any_of(report.datasets, [&](const DatasetReport& dataset) {
                   return dataset.dataset_uid == uid && !dataset.peer_address.empty();
               });
    });
}

}  // namespace

std::set<std::string> find_missing_peers(
    const TrainingJobView& view, std::int64_t attempt, const Moment& now) {
    std::set<std::string> missing;
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        if (!dataset.peers || is_guest(view.job, dataset) || !is_pinned(view.job, dataset)) {
            continue;
        }
        const auto found = view.peers.find(dataset.uid);
        const PeerGroup group = found == view.peers.end() ? PeerGroup{} : found->second;
        const bool is_used = !group.members.empty() || gives_address(view, dataset.uid, now);
        if (is_used && !is_complete(view, attempt, dataset.uid, group, now)) {
            missing.insert(dataset.uid);
        }
    }
    return missing;
}

std::optional<Duration> PinHold::hold(
    const ObjectKey& job,
    const std::set<std::string>& missing,
    TimePoint now,
    AttemptPins& pins,
    const AttemptPins& written) {
    const bool is_same_attempt =
        written.job_uid == pins.job_uid && written.pod_prefix == pins.pod_prefix;
    const auto was_written = [&](const RevisionPin& pin) {
        return is_same_attempt &&
               std::ranges::count(written.pins, pin.dataset_uid, &RevisionPin::dataset_uid) > 0;
    };
    Attempt& attempt = attempts_[job];
    if (attempt.job_uid != pins.job_uid || attempt.pod_prefix != pins.pod_prefix) {
        attempt = {pins.job_uid, pins.pod_prefix, {}};
    }
    std::optional<Duration> wait;
    std::erase_if(pins.pins, [&](const RevisionPin& pin) {
        const TimePoint first_due = was_written(pin) ? now : now + kHoldMax;
        TimePoint& due = attempt.due.emplace(pin.dataset_uid, first_due).first->second;
        if (!missing.contains(pin.dataset_uid)) {
            due = std::min(due, now);
        }
        if (due > now) {
            wait = std::min(wait.value_or(due - now), due - now);
        }
        return due > now;
    });
    return wait;
}

}  // namespace stoker::control
