#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

// A pin lets the first epoch begin. It waits until the group of peers is complete, so that the
// samples' owners do not change while the epoch runs. Pure.
namespace stoker::control {

// The uids of the job's pinned datasets whose group of peers is not complete: on a node of the
// attempt no sidecar leads as a member yet. A node does not count if its sidecar reports the
// dataset without a peer address (an older version). Empty while no sidecar of the dataset has
// reported an address.
std::set<std::string> find_missing_peers(
    const TrainingJobView& view, std::int64_t attempt, const Moment& now);

// Holds pins of new attempts back, each for at most kHoldMax.
class PinHold {
public:
    // Sidecars begin without a pin after 10 s (sidecar/core/revision_gate.h).
    static constexpr Duration kHoldMax = std::chrono::seconds{8};

    // Removes from `pins` those that must wait: those of the datasets in `missing`. Returns the
    // time until the first of these is due. A pin that was let through once is never held again.
    // `written`: the pins in the status before this reconcile; a pin among them that this object
    // sees for the first time was held by an earlier operator, and is let through.
    std::optional<Duration> hold(
        const ObjectKey& job,
        const std::set<std::string>& missing,
        TimePoint now,
        AttemptPins& pins,
        const AttemptPins& written = {});

    void forget(const ObjectKey& job) { attempts_.erase(job); }

private:
    struct Attempt {
        std::string job_uid;
        std::string pod_prefix;
        std::map<std::string, TimePoint> due;  // by dataset uid; in the past: let through
    };

    std::map<ObjectKey, Attempt> attempts_;
};

}  // namespace stoker::control
