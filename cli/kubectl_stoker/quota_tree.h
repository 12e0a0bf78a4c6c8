#pragma once

#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/training_job.h"

namespace stoker::cli {

// What `quota` prints from; all of it what statuses say.
struct QuotaFacts {
    std::vector<control::CachePool> pools;  // may be empty: no right to list them
    std::vector<control::CacheQuota> quotas;
    std::vector<control::TrainingJob> jobs;  // of namespaces without a quota, too
};

// Pools, their namespaces, their jobs. Pure.
std::string quota_text(const QuotaFacts& facts);
std::string quota_json(const QuotaFacts& facts);

}  // namespace stoker::cli
