#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"
#include "operator/sidecars/sidecar_registry.h"

namespace stoker::control {

// Remembers deleted TrainingJobs while their pods still run: until the pods end, their sidecars
// lead, fill their last grants and report. A new operator does not know the jobs that were deleted
// under its predecessor, only that their pods still run. Not thread-safe.
class TerminatingJobs {
public:
    // `grace`: how long a sidecar may act on a grant after its TrainingJob was deleted.
    explicit TerminatingJobs(Duration grace)
        : grace_(grace) {}

    // Call it with each gathered cluster. Adds the deleted jobs that still have pods, with their
    // pods and reports, for `grace` after the first call without the job.
    void add(
        ClusterView& cluster, ClusterCache& cache, SidecarRegistry& registry, const Moment& now);

    // Whether a TrainingJob was deleted before the first call of add() and one of its pods still
    // runs, so that its last grant may be in force.
    [[nodiscard]] bool has_unknown() const { return !unknown_.empty(); }

private:
    struct Known {
        JobUse use;  // as last gathered
        std::optional<TimePoint> gone_at{};
    };

    void remember(const std::vector<JobUse>& jobs, const Moment& now);
    void watch_unknown(const std::vector<JobUse>& jobs, ClusterCache& cache, TimePoint now);

    Duration grace_;
    std::map<std::string, Known> jobs_;  // by uid
    std::optional<TimePoint> began_at_;  // the first call
    std::set<ObjectKey> unknown_;        // pods
};

}  // namespace stoker::control
