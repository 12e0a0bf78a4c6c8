#include "operator/api/cache_pool.h"

#include <charconv>

#include "operator/api/json_reader.h"
#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kReservedFreePercentMax = 90;

// Of "15%".
std::int64_t read_percent(const JsonReader& spec, const std::string& name, std::int64_t fallback) {
    const std::optional<std::string> written = spec.maybe_text(name);
    if (!written) {
        return fallback;
    }
    std::int64_t percent = -1;
    const char* end = written->data() + written->size();
    const auto parsed = std::from_chars(written->data(), end, percent);
    if (parsed.ec != std::errc{} || std::string_view(parsed.ptr, end) != "%" || percent < 0 ||
        percent > kReservedFreePercentMax) {
        spec.complain(name, "must be 0% to 90%");
        return fallback;
    }
    return percent;
}

CachePoolSpec read_spec(const JsonReader& spec) {
    CachePoolSpec result;
    result.node_selector = spec.text_map("nodeSelector");
    result.medium = spec.choice("medium", Medium::kNvme);
    const JsonReader volume = spec.object("volume");
    result.host_path = volume.object("hostPath").text("path");
    result.has_claim_template = !volume.raw("persistentVolumeClaimTemplate").value().empty();
    result.has_csi = !volume.raw("csi").value().empty();
    result.capacity_per_node = spec.maybe_bytes("capacityPerNode").value_or(Bytes::zero());
    result.reserved_free_percent = read_percent(spec, "reservedFree", result.reserved_free_percent);
    result.stop_policy = spec.choice("stopPolicy", StopPolicy::kNone);
    result.allocation = spec.choice("allocation", Objective::kThroughput);
    result.origin_bandwidth = spec.maybe_bytes("originBandwidth");
    const JsonReader price = spec.object("originPrice");
    result.price_per_gib = price.int_or_text("perGiB");
    result.price_per_thousand_requests = price.int_or_text("perThousandRequests");
    const JsonReader quota = spec.object("defaultQuota");
    result.default_quota = {
        quota.maybe_bytes("nominalQuota").value_or(Bytes::zero()),
        quota.maybe_bytes("borrowingLimit"),
        quota.maybe_bytes("lendingLimit")};
    return result;
}

CachePoolStatus read_status(const JsonReader& status) {
    CachePoolStatus result;
    result.observed_generation = status.integer("observedGeneration");
    result.conditions = read_conditions(status);
    const JsonReader columns = status.object("columns");
    result.columns = {columns.text("nodes"), columns.text("used"), columns.text("granted")};
    result.capacity_bytes = status.integer("capacityBytes");
    result.granted_bytes = status.integer("grantedBytes");
    result.used_bytes = status.integer("usedBytes");
    const JsonReader nodes = status.object("nodes");
    result.nodes_ready = nodes.integer("ready");
    result.nodes_total = nodes.integer("total");
    result.sampled_at = status.maybe_time("sampledAt");
    return result;
}

CachePool read_pool(const JsonReader& root) {
    return {read_meta(root), read_spec(root.object("spec")), read_status(root.object("status"))};
}

}  // namespace

Result<CachePool> parse_cache_pool(std::string_view json) {
    return read_document(json, read_pool);
}

std::set<std::string> cache_pool_fields() {
    return record_fields(read_pool);
}

std::string status_patch(const CachePool& pool) {
    const CachePoolStatus& status = pool.status;
    JsonWriter columns;
    columns.text("nodes", status.columns.nodes)
        .text("used", status.columns.used)
        .text("granted", status.columns.granted);
    JsonWriter nodes;
    nodes.number("ready", status.nodes_ready).number("total", status.nodes_total);
    JsonWriter writer;
    writer.number("observedGeneration", status.observed_generation)
        .list("conditions", status.conditions, write_condition)
        .object("columns", columns)
        .number("capacityBytes", status.capacity_bytes)
        .number("grantedBytes", status.granted_bytes)
        .number("usedBytes", status.used_bytes)
        .object("nodes", nodes)
        .time("sampledAt", status.sampled_at);
    return status_body("CachePool", pool.meta, writer);
}

}  // namespace stoker::control
