#pragma once

#include <cstdint>
#include <functional>

#include "operator/agents/agent_registry.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/allocation_board.h"
#include "operator/core/cluster_view.h"
#include "operator/core/profile_book.h"
#include "operator/runtime/reconciler.h"

namespace stoker::control {

// Decides who may keep what where, for the whole cluster at once, and sends it to the sidecars;
// repeats it before it runs out. The decision is a function of what is there
// (operator/core/allocation/plan_allocation.h): a new leader makes the same one as soon as the
// sidecars are attached to it. reconcile() one at a time.
class GrantsController {
public:
    // However many things change, one decision a second is enough.
    static constexpr Duration kNotMoreOftenThan = std::chrono::seconds{1};

    // What is to be looked at again because its part of the decision changed.
    struct OnChange {
        std::function<void(const ObjectKey& training_job)> job;
        std::function<void(const ObjectKey& quota)> quota;
        std::function<void(const ObjectKey& pool)> pool;
    };

    // All must outlive it.
    GrantsController(
        ClusterCache& cache,
        AgentRegistry& registry,
        AllocationBoard& board,
        const Clock& clock,
        std::uint32_t grant_seconds,
        OnChange on_change);

    Result<Reconciled> reconcile();

    // The one key of its queue.
    static ObjectKey key() { return {"", "grants"}; }

private:
    void tell_changes(const Allocation& before, const Allocation& after);

    ClusterCache& cache_;
    AgentRegistry& registry_;
    AllocationBoard& board_;
    const Clock& clock_;
    std::uint32_t grant_seconds_;
    OnChange on_change_;
    TimePoint decided_at_{};
    ProfileBook profiles_;
};

}  // namespace stoker::control
