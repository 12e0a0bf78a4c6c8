#include "operator/controllers/cachepool/controller.h"

#include "operator/controllers/gather.h"
#include "operator/core/status/summarize_pool.h"

namespace stoker::control {

namespace {

constexpr Duration kLookEvery = std::chrono::seconds{20};  // a silent node program causes no event
constexpr Duration kFirstReports = std::chrono::seconds{2};

}  // namespace

CachePoolController::CachePoolController(
    ClusterCache& cache,
    NodeRegistry& nodes,
    LatestAllocation& latest,
    ApiClient& client,
    const Clock& clock)
    : cache_(cache),
      nodes_(nodes),
      latest_(latest),
      clock_(clock),
      status_(client, kinds::kCachePools, clock) {}

Result<Reconciled> CachePoolController::reconcile(
    const ObjectKey& key, const std::stop_token& /*stop*/) {
    const auto stored = cache_.pools().store().get(key);
    if (!stored) {
        status_.forget(key);
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(cache_.pools().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    const LatestAllocation::Snapshot allocation = latest_.get();
    CachePoolView view;
    view.pool = stored->value;
    view.nodes = values_of(cache_.nodes().store().list());
    view.holdings = allocation->view.holdings;
    view.granted = allocation->granted_in(key.name);
    view.sampled_at = allocation->sampled_at;
    view.programs = gather_node_programs(cache_, nodes_);
    if (is_too_early(view, clock_.now())) {
        return Reconciled{kFirstReports};
    }
    CachePool after = view.pool;
    after.status = summarize_cache_pool(view, {clock_.now(), clock_.wall_now()});
    STOKER_TRY(const StatusWrite write, status_.write(view.pool, after, false));
    return Reconciled{write.again_after.value_or(kLookEvery)};
}

}  // namespace stoker::control
