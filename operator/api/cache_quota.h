#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/choices.h"
#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/meta.h"

// CacheQuota of stoker.dev/v1alpha1 as values; crds/stoker.dev_cachequotas.yaml describes every
// field.
namespace stoker::control {

struct FairSharingSpec {
    std::string weight;

    bool operator==(const FairSharingSpec&) const = default;
};

struct ReclaimSpec {
    ReclaimPolicy policy = ReclaimPolicy::kAny;
    std::optional<std::int64_t> grace_period_seconds;

    bool operator==(const ReclaimSpec&) const = default;
};

struct CacheQuotaSpec {
    std::string pool_ref;
    Bytes nominal_quota;
    std::optional<Bytes> borrowing_limit;
    std::optional<Bytes> lending_limit;
    std::optional<FairSharingSpec> fair_sharing;
    std::optional<ReclaimSpec> reclaim;
    StopPolicy stop_policy = StopPolicy::kNone;

    bool operator==(const CacheQuotaSpec&) const = default;
};

struct CacheQuotaColumns {
    std::string used;
    std::string borrowed;
    std::string lent;
    std::string share;

    bool operator==(const CacheQuotaColumns&) const = default;
};

struct QuotaJobStatus {
    std::string name;
    std::int64_t allocated_bytes = 0;
    std::string marginal_per_gib;

    bool operator==(const QuotaJobStatus&) const = default;
};

inline constexpr std::size_t kQuotaJobCountMax = 100;

struct CacheQuotaStatus {
    std::int64_t observed_generation = 0;
    std::vector<Condition> conditions;  // sorted by type
    CacheQuotaColumns columns;
    std::int64_t used_bytes = 0;
    std::int64_t borrowed_bytes = 0;
    std::int64_t lent_bytes = 0;
    std::int64_t weighted_share = 0;   // thousandths of the nominal quota
    std::vector<QuotaJobStatus> jobs;  // largest first, at most kQuotaJobCountMax

    bool operator==(const CacheQuotaStatus&) const = default;
};

struct CacheQuota {
    ObjectMeta meta;
    CacheQuotaSpec spec;
    CacheQuotaStatus status;

    bool operator==(const CacheQuota&) const = default;
};

// Body of a server-side apply to /status, as status_patch() of a TrainingJob.
Json status_patch(const CacheQuota& quota);

}  // namespace stoker::control
