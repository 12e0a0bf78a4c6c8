#include "operator/controllers/cachequota/controller.h"

#include "operator/controllers/gather.h"
#include "operator/core/status/summarize_pool.h"

namespace stoker::control {

Result<Reconciled> CacheQuotaController::reconcile(const ObjectKey& key) {
    const auto stored = parts_.cache.quotas().store().get(key);
    if (!stored) {
        status_.forget(key);
        return Reconciled{};
    }
    if (!status_.has_seen_own_write(parts_.cache.quotas().store(), key)) {
        return Reconciled{kCacheBehind};
    }
    CacheQuotaView view;
    view.quota = stored->value;
    view.quotas = values_of(parts_.cache.quotas().store().by_index(index::kNamespace, key.ns));
    view.pool_exists = parts_.cache.pools().store().get({"", view.quota.spec.pool_ref}) != nullptr;
    const LatestAllocation::Snapshot allocation = parts_.latest.get();
    view.charges = allocation->plan.charges;
    view.uses = allocation->plan.quotas;
    view.late = allocation->late;
    for (const auto& job :
         parts_.cache.training_jobs().store().by_index(index::kNamespace, key.ns)) {
        const std::optional<CacheStatus>& cache = job->value.status.cache;
        if (cache && cache->benefit) {
            view.marginals[job->key] = cache->benefit->marginal_per_gib;
        }
    }
    CacheQuota after = view.quota;
    after.status = summarize_cache_quota(view, {parts_.clock.now(), parts_.clock.wall_now()});
    STOKER_TRY(const StatusWrite write, status_.write(view.quota, after, false));
    return Reconciled{write.again_after};
}

}  // namespace stoker::control
