#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/training_job.h"

// From names in a spec to the things that they name. Pure.
namespace stoker::control {

// What a job reads under one name.
struct ResolvedDataset {
    std::string name;  // under spec.datasets
    std::string uid;   // names the node directory: the Dataset's, or "inline-<digest>"
    DatasetSource source;
    Sampling sampling = Sampling::kEpochShuffle;
    Contract contract = Contract::kExact;
    ContractParameters parameters;  // of that contract
    std::optional<Bytes> total;     // from the Dataset's status; none while nobody has listed it
    std::uint64_t samples = 0;      // likewise

    bool operator==(const ResolvedDataset&) const = default;
};

// Why a job cannot start yet, or empty texts.
struct Obstacle {
    std::string reason;   // "DatasetNotFound"
    std::string message;  // one sentence

    [[nodiscard]] bool empty() const { return reason.empty(); }

    bool operator==(const Obstacle&) const = default;
};

struct ResolvedDatasets {
    std::vector<ResolvedDataset>
        datasets;  // in the order of the spec; complete only without an obstacle
    Obstacle obstacle;

    bool operator==(const ResolvedDatasets&) const = default;
};

// `in_namespace` are the Datasets of the job's namespace. Obstacles: DatasetNotFound,
// DatasetInvalid, SecretsDiffer (the pods can carry one set of S3 credentials).
ResolvedDatasets resolve_datasets(const TrainingJob& job, const std::vector<Dataset>& in_namespace);

// The directory name of an inline storageUri: the same for all jobs of a namespace that read it.
std::string inline_dataset_uid(const std::string& ns, const std::string& storage_uri);

struct ResolvedPool {
    std::string name;  // empty: the job runs without a cache
    std::string host_path;
    std::int64_t reserved_free_percent = 15;
    // Without a pool, why. `waits`: the job must not start, because the pool that it names may
    // still come.
    Obstacle obstacle;
    bool waits = false;

    bool operator==(const ResolvedPool&) const = default;
};

// The pool that the job names; else that of the namespace's only CacheQuota; else the only pool of
// the cluster; else the one named "default". A cache must not keep a job from training: where no
// pool is named and none can be chosen, the job runs without. `quotas` are those of the job's
// namespace.
ResolvedPool resolve_pool(
    const TrainingJob& job,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas);

}  // namespace stoker::control
