#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/choices.h"
#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/meta.h"

// CachePool of stoker.dev/v1alpha1 as values; crds/stoker.dev_cachepools.yaml describes every
// field.
namespace stoker::control {

// The quota of each namespace without a CacheQuota.
struct DefaultQuotaSpec {
    Bytes nominal_quota;
    std::optional<Bytes> borrowing_limit;
    std::optional<Bytes> lending_limit;

    bool operator==(const DefaultQuotaSpec&) const = default;
};

struct CachePoolSpec {
    TextMap node_selector;  // empty: all nodes
    Medium medium = Medium::kNvme;
    std::string host_path;
    bool has_claim_template = false;
    bool has_csi = false;
    Bytes capacity_per_node;
    std::int64_t reserved_free_percent = 15;
    StopPolicy stop_policy = StopPolicy::kNone;
    Objective allocation = Objective::kThroughput;
    std::optional<Bytes> origin_bandwidth;  // bytes per second for all jobs together; none: unknown

    std::string price_per_gib;  // per GiB from the origin, a number in any currency; "": none
    std::string price_per_thousand_requests;
    DefaultQuotaSpec default_quota;

    bool operator==(const CachePoolSpec&) const = default;
};

struct CachePoolColumns {
    std::string nodes;
    std::string used;
    std::string granted;

    bool operator==(const CachePoolColumns&) const = default;
};

struct CachePoolStatus {
    std::int64_t observed_generation = 0;
    std::vector<Condition> conditions;  // sorted by type
    CachePoolColumns columns;
    std::int64_t capacity_bytes = 0;
    std::int64_t granted_bytes = 0;
    std::int64_t used_bytes = 0;
    std::int64_t nodes_ready = 0;
    std::int64_t nodes_total = 0;
    std::optional<WallTime> sampled_at;

    bool operator==(const CachePoolStatus&) const = default;
};

// Cluster-scoped: meta.ns is empty.
struct CachePool {
    ObjectMeta meta;
    CachePoolSpec spec;
    CachePoolStatus status;

    bool operator==(const CachePool&) const = default;
};

// Body of a server-side apply to /status, as status_patch() of a TrainingJob.
Json status_patch(const CachePool& pool);

}  // namespace stoker::control
