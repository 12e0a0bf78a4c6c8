#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
    std::string ns;    // the Dataset's, or the job's; with the uid it names the node directory
    std::string uid;   // the Dataset's, or "inline-<digest>"
    std::string object_name;  // the Dataset's; empty for an inline dataset
    DatasetSource source;
    Sampling sampling = Sampling::kEpochShuffle;
    Contract contract = Contract::kExact;
    ContractParameters parameters;  // of that contract
    std::optional<Bytes> total;     // from the Dataset's status; none while nobody has listed it
    std::uint64_t samples = 0;      // likewise

    bool operator==(const ResolvedDataset&) const = default;
};

// The reason of the blocker that a Dataset of another namespace is not shared with the job's.
inline constexpr std::string_view kNotShared = "NotShared";

// Why a job cannot start yet, or empty texts.
struct Blocker {
    std::string reason;   // "DatasetNotFound"
    std::string message;  // one sentence

    [[nodiscard]] bool empty() const { return reason.empty(); }

    bool operator==(const Blocker&) const = default;
};

struct ResolvedDatasets {
    // In the order of the spec; complete without a blocker, or where the attempt goes on.
    std::vector<ResolvedDataset> datasets;
    Blocker blocker;  // the first one
    // The blocker came up while an attempt reads: that one goes on, another would not start.
    bool goes_on = false;

    bool operator==(const ResolvedDatasets&) const = default;
};

// `datasets`: at least those that the job names and that exist. `labels` of the job's namespace;
// not known: nothing is shared with it. Blockers: DatasetNotFound, NotShared (a Dataset of another
// namespace that is not shared with the job's; whether it exists is not told), DatasetInvalid,
// SecretsDiffer (the pods can carry one set of S3 credentials; Datasets of other namespaces need
// none).
ResolvedDatasets resolve_datasets(
    const TrainingJob& job,
    const std::vector<Dataset>& datasets,
    const std::optional<TextMap>& labels = std::nullopt);

// Whether it is among them.
bool has_dataset(const ResolvedDatasets& resolved, const std::string& uid);

// Whether the ranks of the job are held to one revision of the dataset: several ranks read it from
// an object store. A directory's ETags hold inode numbers, which differ from node to node for the
// same file.
bool is_pinned(const TrainingJob& job, const ResolvedDataset& dataset);

// For a Dataset of another namespace that names a Secret, in a sentence about its origin: what a
// Secret of the job's own namespace would be good for. Else nothing.
std::string tell_credentials(const ResolvedDataset& dataset, const std::string& job_namespace);

// The directory name of an inline storageUri: the same for all jobs of a namespace that read it at
// the same endpoint with the same Secret. What one key fetched is not for another.
std::string inline_dataset_uid(const std::string& ns, const JobDataset& dataset);

struct ResolvedPool {
    std::string name;  // empty: the job runs without a cache
    std::int64_t reserved_free_percent = 15;
    // Without a pool, why. `waits`: the job must not start, because the pool that it names may
    // still come.
    Blocker blocker;
    bool waits = false;

    bool operator==(const ResolvedPool&) const = default;
};

// The pool that the job names; else that of the namespace's only CacheQuota; else the only pool of
// the cluster; else the one named "default". A cache must not keep a job from training: where no
// pool is named and none can be chosen, the job runs without. `quotas` are those of the job's
// namespace.
// An attempt keeps the pool that it was given, or none (status.attemptPool), until it ends or is
// suspended: its pods mount that pool, whatever else could be chosen now.
ResolvedPool resolve_pool(
    const TrainingJob& job,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas);

}  // namespace stoker::control
