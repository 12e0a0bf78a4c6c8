#include "operator/api/cache_quota.h"

#include "operator/api/json_reader.h"
#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

CacheQuotaSpec read_spec(const JsonReader& spec) {
    CacheQuotaSpec result;
    result.pool_ref = spec.object("poolRef").text("name");
    result.nominal_quota = spec.maybe_bytes("nominalQuota").value_or(Bytes::zero());
    result.borrowing_limit = spec.maybe_bytes("borrowingLimit");
    result.lending_limit = spec.maybe_bytes("lendingLimit");
    const JsonReader sharing = spec.object("fairSharing");
    if (sharing.present()) {
        result.fair_sharing = FairSharingSpec{sharing.int_or_text("weight")};
    }
    const JsonReader reclaim = spec.object("reclaim");
    if (reclaim.present()) {
        result.reclaim = ReclaimSpec{
            reclaim.choice("policy", ReclaimPolicy::kAny),
            reclaim.maybe_integer("gracePeriodSeconds")};
    }
    result.stop_policy = spec.choice("stopPolicy", StopPolicy::kNone);
    return result;
}

CacheQuotaStatus read_status(const JsonReader& status) {
    CacheQuotaStatus result;
    result.observed_generation = status.integer("observedGeneration");
    result.conditions = read_conditions(status);
    const JsonReader columns = status.object("columns");
    result.columns = {
        columns.text("used"),
        columns.text("borrowed"),
        columns.text("lent"),
        columns.text("share")};
    result.used_bytes = status.integer("usedBytes");
    result.borrowed_bytes = status.integer("borrowedBytes");
    result.lent_bytes = status.integer("lentBytes");
    result.weighted_share = status.integer("weightedShare");
    status.each("jobs", [&](const JsonReader& item) {
        result.jobs.push_back(
            {item.text("name"), item.integer("allocatedBytes"), item.text("marginalPerGiB")});
    });
    return result;
}

CacheQuota read_quota(const JsonReader& root) {
    return {read_meta(root), read_spec(root.object("spec")), read_status(root.object("status"))};
}

JsonWriter write_job(const QuotaJobStatus& job) {
    JsonWriter writer;
    writer.text("name", job.name)
        .number("allocatedBytes", job.allocated_bytes)
        .text("marginalPerGiB", job.marginal_per_gib);
    return writer;
}

}  // namespace

Result<CacheQuota> parse_cache_quota(std::string_view json) {
    return read_document(json, read_quota);
}

std::set<std::string> cache_quota_fields() {
    return record_fields(read_quota);
}

std::string status_patch(const CacheQuota& quota) {
    const CacheQuotaStatus& status = quota.status;
    JsonWriter columns;
    columns.text("used", status.columns.used)
        .text("borrowed", status.columns.borrowed)
        .text("lent", status.columns.lent)
        .text("share", status.columns.share);
    JsonWriter writer;
    writer.number("observedGeneration", status.observed_generation)
        .list("conditions", status.conditions, write_condition)
        .object("columns", columns)
        .number("usedBytes", status.used_bytes)
        .number("borrowedBytes", status.borrowed_bytes)
        .number("lentBytes", status.lent_bytes)
        .number("weightedShare", status.weighted_share)
        .list("jobs", status.jobs, write_job);
    return status_body("CacheQuota", quota.meta, writer);
}

}  // namespace stoker::control
