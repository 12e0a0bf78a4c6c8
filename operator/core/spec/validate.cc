#include "operator/core/spec/validate.h"

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "common/domain/block_format.h"
#include "common/domain/host_path.h"
#include "common/domain/http_index.h"
#include "common/domain/http_uri.h"
#include "common/domain/sample_format.h"
#include "common/domain/source_place.h"
#include "operator/core/spec/cron.h"
#include "operator/core/spec/field_checks.h"

namespace stoker::control {

namespace {

void check_source_volume(
    const DatasetSource& source, const std::string& path, Complaints& complaints) {
    const bool directory = source.storage_uri.starts_with("file://");
    complaints.unless(
        source.volume.has_value() == directory,
        path + ".volume",
        "volume belongs to a directory: a file:// source needs it, and other sources must leave it "
        "out");
    complaints.unless(
        !directory || (source.endpoint.empty() && source.region.empty() && !source.path_style &&
                       !source.secret_ref && !source.ca_bundle),
        path,
        "endpoint, region, pathStyle, secretRef and caBundle belong to a server; leave them out of "
        "a file:// source");
    if (source.volume) {
        complaints.unless(
            source.volume->claim_name.has_value() != source.volume->host_path.has_value(),
            path + ".volume",
            "set exactly one of persistentVolumeClaim and hostPath");
        const std::string host_path = source.volume->host_path.value_or("/");
        complaints.unless(
            host_path.starts_with('/') && !has_dot_part(host_path),
            path + ".volume.hostPath.path",
            "path must begin with / and must not have .. as a part");
    }
}

void check_web_server(
    const DatasetSource& source, const std::string& path, Complaints& complaints) {
    const bool is_http = domain::is_http_uri(source.storage_uri);
    complaints.unless(
        !is_http || (source.endpoint.empty() && source.region.empty() && !source.path_style),
        path,
        "endpoint, region and pathStyle belong to s3://; leave them out of an http source");
    complaints.unless(
        !source.storage_uri.starts_with("http://") || (!source.secret_ref && !source.ca_bundle),
        path,
        "secretRef and caBundle need https://, because http:// is not encrypted");
    complaints.unless(
        source.index.empty() || is_http,
        path + ".index",
        "index belongs to an http source; other origins can list their objects");
    complaints.unless(
        source.index.empty() || domain::is_http_key(source.index),
        path + ".index",
        "index must be the name of an object below storageUri, without . or .. as a part");
}

// `path`: of the source in the spec.
void check_source(const DatasetSource& source, const std::string& path, Complaints& complaints) {
    complaints.unless(
        is_s3_uri(source.storage_uri) || source.storage_uri.starts_with("file:///") ||
            domain::check_http_uri(source.storage_uri).has_value(),
        path + ".storageUri",
        "storageUri must be s3://bucket/prefix, https://host/folder (percent-encoded, without "
        "user, "
        "query and fragment) or file:///directory");
    const std::size_t scheme_end = source.storage_uri.find("://");
    complaints.unless(
        scheme_end == std::string::npos || !has_dot_part(source.storage_uri.substr(scheme_end + 3)),
        path + ".storageUri",
        "storageUri must not have . or .. as a part of its path");
    complaints.unless(
        source.endpoint.empty() || domain::is_http_uri(source.endpoint),
        path + ".endpoint",
        "endpoint must begin with http:// or https://");
    check_source_volume(source, path, complaints);
    check_web_server(source, path, complaints);
}

void check_selector(const LabelSelector& selector, std::string_view path, Complaints& complaints) {
    for (const LabelRequirement& it : selector.match_expressions) {
        const bool lists = it.op == LabelOperator::kIn || it.op == LabelOperator::kNotIn;
        complaints.unless(
            lists != it.values.empty(),
            fmt::format("{}.matchExpressions[{}]", path, it.key),
            "operators In and NotIn need values; Exists and DoesNotExist have none");
    }
}

void check_sharing(const DatasetSpec& spec, Complaints& complaints) {
    if (!spec.shared_with) {
        return;
    }
    const bool has_claim = !spec.sources.empty() && spec.sources.front().volume &&
                           spec.sources.front().volume->claim_name;
    complaints.unless(
        !has_claim,
        "spec.sharing",
        "a PersistentVolumeClaim is reached from its own namespace only; share a Dataset with an "
        "s3:// or https:// source or a hostPath volume");
    check_selector(*spec.shared_with, "spec.sharing.namespaceSelector", complaints);
}

void check_format(const DatasetSpec& spec, Complaints& complaints) {
    constexpr Bytes kBlockSizeMin = mib(1);
    const bool is_blocks = spec.format == DatasetFormat::kBlocks;
    complaints.unless(
        !is_blocks || spec.sources.empty() || !spec.sources.front().volume,
        "spec.format",
        "format Blocks needs an s3:// or https:// source");
    complaints.unless(
        is_blocks || !spec.block_size,
        "spec.blockSize",
        "blockSize belongs to format Blocks; leave it out or choose that format");
    complaints.unless(
        !spec.block_size ||
            (*spec.block_size >= kBlockSizeMin && *spec.block_size <= domain::kBlockBytesMax),
        "spec.blockSize",
        "blockSize must be between 1Mi and 32Mi");
    complaints.unless(
        (spec.format == DatasetFormat::kRecords) == spec.records.has_value(),
        "spec.records",
        "records says how long the rows of format Records are; set both or neither");
    const auto rows_max = static_cast<std::int64_t>(domain::RecordRows::kBytesMax);
    complaints.unless(
        !spec.records || (spec.records->bytes >= 1 && spec.records->bytes <= rows_max),
        "spec.records.bytes",
        fmt::format("bytes must be between 1 and {}", rows_max));
}

bool has_host_path(const DatasetSource& source) {
    return source.volume && source.volume->host_path;
}

// Whether all of `inner` lies in `outer`, or is `outer`.
bool lies_in(const DatasetSource& inner, const DatasetSource& outer) {
    return inner.volume == outer.volume &&
           domain::lies_in(
               {inner.storage_uri, inner.endpoint}, {outer.storage_uri, outer.endpoint});
}

void check_packing(const DatasetSpec& spec, Complaints& complaints) {
    constexpr Bytes kChunkBytesMin = kib(4);
    constexpr Bytes kChunkBytesMax = mib(512);
    const DatasetPacking& packing = *spec.packing;
    complaints.unless(
        spec.format == DatasetFormat::kChunks,
        "spec.packing",
        "packing belongs to format Chunks; leave it out or choose that format");
    check_source(packing.from, "spec.packing.from", complaints);
    const DatasetSource destination = spec.sources.empty() ? DatasetSource{} : spec.sources.front();
    complaints.unless(
        !has_host_path(packing.from) && !has_host_path(destination),
        "spec.packing",
        "a Dataset with packing must have no hostPath; use a PersistentVolumeClaim");
    complaints.unless(
        !domain::is_http_uri(packing.from.storage_uri) &&
            !domain::is_http_uri(destination.storage_uri),
        "spec.packing",
        "packing reads and writes s3:// and PersistentVolumeClaims, not web servers");
    complaints.unless(
        !lies_in(destination, packing.from),
        "spec.packing.from.storageUri",
        "the chunks must not lie inside the folder that is packed");
    complaints.unless(
        packing.chunk_bytes >= kChunkBytesMin && packing.chunk_bytes <= kChunkBytesMax,
        "spec.packing.chunkBytes",
        "chunkBytes must be between 4Ki and 512Mi");
    complaints.unless(packing.seed >= 0, "spec.packing.seed", "seed must be 0 or more");
    complaints.unless(
        packing.active_deadline_seconds >= 1,
        "spec.packing.activeDeadlineSeconds",
        "activeDeadlineSeconds must be 1 or more");
}

// Whether the text matches the CRDs' pattern for decimal numbers, or is empty.
bool is_decimal(const std::string& text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    return text.empty() ||
           (read.ec == std::errc{} && read.ptr == end && number >= 0 && std::isfinite(number));
}

}  // namespace

std::vector<FieldError> validate(const Dataset& dataset) {
    Complaints complaints;
    const DatasetSpec& spec = dataset.spec;
    complaints.unless(!spec.sources.empty(), "spec.sources", "a source is missing");
    complaints.unless(
        spec.sources.size() <= 1,
        "spec.sources",
        "more than one source does not work yet; write one Dataset for each");
    if (!spec.sources.empty()) {
        check_source(spec.sources.front(), "spec.sources[0]", complaints);
    }
    check_format(spec, complaints);
    if (spec.packing) {
        check_packing(spec, complaints);
    }
    complaints.unless(
        (spec.consistency == Consistency::kTtl) == spec.ttl_seconds.has_value(),
        "spec.consistency",
        "mode TTL needs ttlSeconds, and the other modes must leave it out");
    complaints.unless(
        spec.ttl_seconds.value_or(1) >= 1,
        "spec.consistency.ttlSeconds",
        "ttlSeconds must be 1 or more");
    check_sharing(spec, complaints);
    complaints.unless(
        spec.retention_after_last_use_seconds.value_or(0) >= 0,
        "spec.retention.afterLastUseSeconds",
        "afterLastUseSeconds must be 0 or more");
    return complaints.take();
}

std::vector<FieldError> validate(const DatasetWarmup& warmup) {
    Complaints complaints;
    const DatasetWarmupSpec& spec = warmup.spec;
    complaints.unless(
        !spec.dataset_ref.empty(), "spec.datasetRef.name", "name of the Dataset is missing");
    complaints.unless(
        spec.nodes.names.empty() || (!spec.nodes.selector && !spec.nodes.count),
        "spec.nodes",
        "names excludes selector and count");
    complaints.unless(
        spec.nodes.names.size() <= kWarmupNodeCountMax,
        "spec.nodes.names",
        "at most 256 nodes can be named");
    check_selector(
        spec.nodes.selector.value_or(LabelSelector{}), "spec.nodes.selector", complaints);
    const auto count = spec.nodes.count.value_or(1);
    complaints.unless(
        count >= 1 && count <= static_cast<std::int64_t>(kWarmupNodeCountMax),
        "spec.nodes.count",
        "count must be between 1 and 256");
    complaints.unless(
        !spec.rate_limit || *spec.rate_limit > Bytes::zero(),
        "spec.rateLimit",
        "rateLimit must be more than 0; leave it out for no limit");
    if (const Result<CronSchedule> schedule = CronSchedule::parse(spec.schedule);
        !spec.schedule.empty() && !schedule) {
        complaints.unless(false, "spec.schedule", schedule.error().message);
    }
    complaints.unless(
        spec.ttl_seconds_after_finished.value_or(0) >= 0,
        "spec.ttlSecondsAfterFinished",
        "ttlSecondsAfterFinished must be 0 or more");
    return complaints.take();
}

namespace {

void check_pool_path(const std::string& path, Complaints& complaints) {
    if (path.empty()) {
        return;
    }
    const bool plain = is_plain_path(path);
    complaints.unless(
        plain,
        "spec.volume.hostPath.path",
        "path must be absolute and have letters, digits, '.', '_' and '-' in its parts: no // and "
        "no / at its end, no . or .. as a part");
    complaints.unless(
        !plain || !domain::is_system_path(path),
        "spec.volume.hostPath.path",
        "path must not be a directory of the system, such as /etc, /usr, /var/lib or "
        "/var/lib/kubelet; choose one of its own, such as /var/lib/stoker");
}

}  // namespace

std::vector<FieldError> validate(const CachePool& pool) {
    Complaints complaints;
    const CachePoolSpec& spec = pool.spec;
    complaints.unless(
        spec.medium == Medium::kNvme,
        "spec.medium",
        "medium Memory does not work yet; today NVMe does");
    complaints.unless(
        !spec.has_claim_template,
        "spec.volume.persistentVolumeClaimTemplate",
        "persistentVolumeClaimTemplate does not work yet; today hostPath does");
    complaints.unless(
        !spec.has_csi, "spec.volume.csi", "csi does not work yet; today hostPath does");
    complaints.unless(
        !spec.host_path.empty(),
        "spec.volume",
        "hostPath is missing, the only kind of volume that works today");
    check_pool_path(spec.host_path, complaints);
    complaints.unless(
        spec.capacity_per_node > Bytes::zero(),
        "spec.capacityPerNode",
        "capacityPerNode must be more than 0");
    complaints.unless(
        !spec.origin_bandwidth || *spec.origin_bandwidth > Bytes::zero(),
        "spec.originBandwidth",
        "originBandwidth must be more than 0");
    complaints.unless(
        is_decimal(spec.price_per_gib),
        "spec.originPrice.perGiB",
        "perGiB must be a number, 0 or more");
    complaints.unless(
        is_decimal(spec.price_per_thousand_requests),
        "spec.originPrice.perThousandRequests",
        "perThousandRequests must be a number, 0 or more");
    complaints.unless(
        spec.default_quota.lending_limit.value_or(Bytes::zero()) <=
            spec.default_quota.nominal_quota,
        "spec.defaultQuota.lendingLimit",
        "lendingLimit must not be more than nominalQuota");
    return complaints.take();
}

std::vector<FieldError> validate(const CacheQuota& quota) {
    Complaints complaints;
    const CacheQuotaSpec& spec = quota.spec;
    complaints.unless(!spec.pool_ref.empty(), "spec.poolRef.name", "poolRef is missing");
    complaints.unless(
        !spec.lending_limit || *spec.lending_limit <= spec.nominal_quota,
        "spec.lendingLimit",
        "lendingLimit must not be more than nominalQuota");
    if (spec.fair_sharing) {
        complaints.unless(
            is_decimal(spec.fair_sharing->weight),
            "spec.fairSharing.weight",
            "weight must be a number, 0 or more");
    }
    if (spec.reclaim) {
        complaints.unless(
            spec.reclaim->grace_period_seconds.value_or(0) >= 0,
            "spec.reclaim.gracePeriodSeconds",
            "gracePeriodSeconds must be 0 or more");
    }
    return complaints.take();
}

std::string to_string(const std::vector<FieldError>& errors) {
    std::string result;
    for (const FieldError& error : errors) {
        result += result.empty() ? "" : "; ";
        result += error.path + ": " + error.message;
    }
    return result;
}

}  // namespace stoker::control
