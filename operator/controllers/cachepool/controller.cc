#include "operator/controllers/cachepool/controller.h"

#include "operator/controllers/gather.h"
#include "operator/core/status/summarize_pool.h"

namespace stoker::control {

namespace {

constexpr Duration kLookEvery =
    std::chrono::seconds{20};  // no event tells that a node program is silent
constexpr Duration kFirstReports = std::chrono::seconds{2};

}  // namespace

Result<Reconciled> CachePoolController::reconcile(const ObjectKey& key) {
    const auto stored = parts_.cache.pools().store().get(key);
    if (!stored) {
        status_.forget(key);
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.pools().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    const LatestAllocation::Snapshot allocation = parts_.latest.get();
    CachePoolView view;
    view.pool = stored->value;
    view.nodes = values_of(parts_.cache.nodes().store().list());
    view.holdings = allocation->view.holdings;
    view.granted = allocation->granted_in(key.name);
    view.sampled_at = allocation->sampled_at;
    view.programs = gather_node_programs(parts_.cache, parts_.nodes);
    if (is_too_early(view, parts_.clock.now())) {
        return Reconciled{kFirstReports};
    }
    CachePool after = view.pool;
    after.status = summarize_cache_pool(view, {parts_.clock.now(), parts_.clock.wall_now()});
    STOKER_TRY(const StatusWrite write, status_.write(view.pool, after, false));
    return Reconciled{write.again_after.value_or(kLookEvery)};
}

}  // namespace stoker::control
