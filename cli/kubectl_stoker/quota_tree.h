#pragma once

#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/training_job.h"

namespace stoker::cli {

// Input of `quota`; everything comes from object statuses.
struct QuotaFacts {
    std::vector<control::CachePool> pools;  // empty without the right to list pools
    std::vector<control::CacheQuota> quotas;
    std::vector<control::TrainingJob> jobs;  // includes jobs of namespaces without a quota
};

// Prints a tree of pools, their namespaces and their jobs. Pure.
std::string quota_text(const QuotaFacts& facts);
std::string quota_json(const QuotaFacts& facts);

}  // namespace stoker::cli
