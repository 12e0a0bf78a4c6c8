#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/grants/peer_keeper.h"
#include "operator/controllers/grants/terminating_jobs.h"
#include "operator/core/allocation/reclaim_book.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/grant_book.h"
#include "operator/core/view/over_quota_holders.h"
#include "operator/core/view/profile_book.h"
#include "operator/kube/event.h"

namespace stoker::control {

// Allocates the whole cluster's cache at once, sends the grants to the sidecars, and repeats each
// grant before it expires. The plan is a function of the observed state
// (operator/core/allocation/plan_allocation.h): the next operator computes the same one once all
// sidecars have reported to it (GrantBook). Emits an Event when a sidecar must return bytes, and
// one if it is late. reconcile() one at a time; its first call must follow the leader election.
class GrantsController {
public:
    // At most one decision per second, however many changes come, and at most one fifth of the time
    // for decisions: one about ten thousand jobs takes seconds.
    static constexpr Duration kNotMoreOftenThan = std::chrono::seconds{1};
    static constexpr int kShareOfTime = 5;

    // Called for each object whose entry in the plan changed.
    struct OnChange {
        std::function<void(const ObjectKey& training_job)> job;
        std::function<void(const ObjectKey& training_job)>
            profile;  // only the numbers of its profile
        std::function<void(const ObjectKey& quota)> quota;
        std::function<void(const ObjectKey& pool)> pool;
        std::function<void(EventNote note)> event;  // for people
    };

    GrantsController(const ControllerParts& parts, std::uint32_t grant_seconds, OnChange on_change);

    Result<Reconciled> reconcile(const ObjectKey& key);

    // The only key of this controller's queue.
    static ObjectKey key() { return {"", "grants"}; }

private:
    // Time from the beginning of a decision that took `took` to the beginning of the next one.
    [[nodiscard]] Duration pause_after(Duration took) const;
    // The plan's grants that may be sent, with the jobs' weights and the warm-ups' orders.
    std::vector<Grant> take_grants(
        const ClusterView& cluster, const AllocationPlan& plan, const Moment& now);
    // Publishes the decision, and calls OnChange for the objects whose entries changed.
    void keep(const Allocation& before, Allocation after);
    ClusterView gather(const Moment& now);
    // The planner's input, with the contents of node directories (Holding) and HeldBack namespaces.
    AllocationView look(const ClusterView& cluster, const Moment& now);
    void tell_changes(const Allocation& before, const Allocation& after);
    void tell_reclaims(const ClusterView& cluster);
    // The holder's TrainingJob, or a filler's Dataset; nullopt: that object is gone.
    std::optional<EventSubject> subject_of(const OverQuotaHolder& holder);
    void tell(
        const OverQuotaHolder& holder,
        EventType type,
        const std::string& reason,
        std::string words);

    ControllerParts parts_;
    std::uint32_t grant_seconds_;
    OnChange on_change_;
    TimePoint decided_at_{};
    Duration pause_ = kNotMoreOftenThan;
    ProfileBook profiles_;
    GrantBook grants_;
    TerminatingJobs terminating_;
    ReclaimBook reclaims_;
    PeerKeeper peers_;
    bool was_settled_ = true;
};

}  // namespace stoker::control
