#include "operator/api/cache_quota.h"

#include "operator/api/field_codec.h"

namespace stoker::control {

template <>
inline constexpr auto kFields<FairSharingSpec> =
    table(field("weight", &FairSharingSpec::weight, IntOrText{}));

template <>
inline constexpr auto kFields<ReclaimSpec> = table(
    field("policy", &ReclaimSpec::policy),
    field("gracePeriodSeconds", &ReclaimSpec::grace_period_seconds));

template <>
inline constexpr auto kFields<CacheQuotaSpec> = table(
    field("poolRef.name", &CacheQuotaSpec::pool_ref),
    field("nominalQuota", &CacheQuotaSpec::nominal_quota, Quantity{}),
    field("borrowingLimit", &CacheQuotaSpec::borrowing_limit, Quantity{}),
    field("lendingLimit", &CacheQuotaSpec::lending_limit, Quantity{}),
    field("fairSharing", &CacheQuotaSpec::fair_sharing),
    field("reclaim", &CacheQuotaSpec::reclaim),
    field("stopPolicy", &CacheQuotaSpec::stop_policy));

template <>
inline constexpr auto kFields<CacheQuotaColumns> = table(
    field("used", &CacheQuotaColumns::used),
    field("borrowed", &CacheQuotaColumns::borrowed),
    field("lent", &CacheQuotaColumns::lent),
    field("share", &CacheQuotaColumns::share));

template <>
inline constexpr auto kFields<QuotaJobStatus> = table(
    field("name", &QuotaJobStatus::name),
    field("allocatedBytes", &QuotaJobStatus::allocated_bytes),
    field("marginalPerGiB", &QuotaJobStatus::marginal_per_gib));

template <>
inline constexpr auto kFields<CacheQuotaStatus> = table(
    field("observedGeneration", &CacheQuotaStatus::observed_generation),
    field("conditions", &CacheQuotaStatus::conditions),
    field("columns", &CacheQuotaStatus::columns),
    field("usedBytes", &CacheQuotaStatus::used_bytes),
    field("borrowedBytes", &CacheQuotaStatus::borrowed_bytes),
    field("lentBytes", &CacheQuotaStatus::lent_bytes),
    field("weightedShare", &CacheQuotaStatus::weighted_share),
    field("jobs", &CacheQuotaStatus::jobs));

template <>
inline constexpr auto kFields<CacheQuota> = table(
    field("metadata", &CacheQuota::meta),
    field("spec", &CacheQuota::spec),
    field("status", &CacheQuota::status));

template Result<CacheQuota> read_document<CacheQuota>(const Json& json);
template std::set<std::string> known_fields<CacheQuota>();

Json status_patch(const CacheQuota& quota) {
    return own_status_body("CacheQuota", quota.meta, FieldWriter::write_fields(quota.status));
}

}  // namespace stoker::control
