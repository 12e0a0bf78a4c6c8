#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/agents/agent_registry.h"
#include "operator/controllers/cachepool/pod_owner.h"
#include "operator/controllers/cachepool/prepare_pod.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/core/plan_preparation.h"
#include "operator/kube/client.h"
#include "operator/runtime/reconciler.h"

namespace stoker::control {

// Keeps the directory of every pool on every node of it prepared: gathers, plans
// (operator/core/plan_preparation.h), makes and removes pods. What is done is known to this process
// only; a new leader does it once more, which changes nothing on a node that is prepared. A sidecar
// that cannot write has its node prepared again, at most every few minutes: a replaced disk does
// not always show in the Node object. Thread-safe; reconcile() one at a time.
class NodePreparer {
public:
    static constexpr Duration kAgainAfter = std::chrono::minutes{5};
    static constexpr Duration kLookEvery = std::chrono::seconds{30};

    // All must outlive it.
    NodePreparer(
        ClusterCache& cache,
        AgentRegistry& registry,
        ApiClient& client,
        const Clock& clock,
        NodePodSettings settings);

    // One look at everything.
    Result<Reconciled> reconcile();

    // Ready nodes whose directory of that pool is prepared, for the pool's status.
    [[nodiscard]] std::set<std::string> prepared_nodes(const CachePool& pool);

    // The one key of its queue.
    static ObjectKey key() { return {"", "nodes"}; }

private:
    PreparationView gather();
    void forget_what_failed(std::map<PreparationTarget, TimePoint>& done) const;
    Status apply(const PreparationPlan& plan);

    ClusterCache& cache_;
    AgentRegistry& registry_;
    ApiClient& client_;
    const Clock& clock_;
    NodePodSettings settings_;
    PodOwner owner_;
    Guarded<std::map<PreparationTarget, TimePoint>> done_;  // since when
};

}  // namespace stoker::control
