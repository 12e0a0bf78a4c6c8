#include "operator/api/cache_pool.h"

#include <charconv>

#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kReservedFreePercentMax = 90;

// Parses "15%".
struct Percent {
    void read(const JsonReader& json, const std::string& name, std::int64_t& value) const {
        const std::optional<std::string> written = json.maybe_text(name);
        if (!written) {
            return;
        }
        std::int64_t percent = -1;
        const char* end = written->data() + written->size();
        const auto parsed = std::from_chars(written->data(), end, percent);
        if (parsed.ec != std::errc{} || std::string_view(parsed.ptr, end) != "%" || percent < 0 ||
            percent > kReservedFreePercentMax) {
            json.complain(name, "must be 0% to 90%");
            return;
        }
        value = percent;
    }
};

// True for any value except null; the value itself is ignored.
struct IsSet {
    void read(const JsonReader& json, const std::string& name, bool& value) const {
        value = json.raw(name) != Json();
    }
};

}  // namespace

template <>
inline constexpr auto kFields<DefaultQuotaSpec> = table(
    field("nominalQuota", &DefaultQuotaSpec::nominal_quota, Quantity{}),
    field("borrowingLimit", &DefaultQuotaSpec::borrowing_limit, Quantity{}),
    field("lendingLimit", &DefaultQuotaSpec::lending_limit, Quantity{}));

template <>
inline constexpr auto kFields<CachePoolSpec> = table(
    field("nodeSelector", &CachePoolSpec::node_selector),
    field("medium", &CachePoolSpec::medium),
    field("volume.hostPath.path", &CachePoolSpec::host_path),
    field("volume.persistentVolumeClaimTemplate", &CachePoolSpec::has_claim_template, IsSet{}),
    field("volume.csi", &CachePoolSpec::has_csi, IsSet{}),
    field("capacityPerNode", &CachePoolSpec::capacity_per_node, Quantity{}),
    field("reservedFree", &CachePoolSpec::reserved_free_percent, Percent{}),
    field("stopPolicy", &CachePoolSpec::stop_policy),
    field("allocation", &CachePoolSpec::allocation),
    field("originBandwidth", &CachePoolSpec::origin_bandwidth, Quantity{}),
    field("originPrice.perGiB", &CachePoolSpec::price_per_gib, IntOrText{}),
    field(
        "originPrice.perThousandRequests",
        &CachePoolSpec::price_per_thousand_requests,
        IntOrText{}),
    field("defaultQuota", &CachePoolSpec::default_quota));

template <>
inline constexpr auto kFields<CachePoolColumns> = table(
    field("nodes", &CachePoolColumns::nodes),
    field("used", &CachePoolColumns::used),
    field("granted", &CachePoolColumns::granted));

template <>
inline constexpr auto kFields<CachePoolStatus> = table(
    field("observedGeneration", &CachePoolStatus::observed_generation),
    field("conditions", &CachePoolStatus::conditions),
    field("columns", &CachePoolStatus::columns),
    field("capacityBytes", &CachePoolStatus::capacity_bytes),
    field("grantedBytes", &CachePoolStatus::granted_bytes),
    field("usedBytes", &CachePoolStatus::used_bytes),
    field("nodes.ready", &CachePoolStatus::nodes_ready),
    field("nodes.total", &CachePoolStatus::nodes_total),
    field("sampledAt", &CachePoolStatus::sampled_at));

template <>
inline constexpr auto kFields<CachePool> = table(
    field("metadata", &CachePool::meta),
    field("spec", &CachePool::spec),
    field("status", &CachePool::status));

template Result<CachePool> read_document<CachePool>(const Json& json);
template std::set<std::string> known_fields<CachePool>();

Json status_patch(const CachePool& pool) {
    return own_status_body("CachePool", pool.meta, FieldWriter::write_fields(pool.status));
}

}  // namespace stoker::control
