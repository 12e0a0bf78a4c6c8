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

// Resolves names in a spec to objects. Pure.
namespace stoker::control {

// A dataset that a job reads under one name.
struct ResolvedDataset {
    std::string name;         // under spec.datasets
    std::string ns;           // namespace of the Dataset or job; with uid, names the node directory
    std::string uid;          // the Dataset's, or "inline-<digest>"
    std::string object_name;  // the Dataset's; empty for an inline dataset
    DatasetSource source;
    DatasetFormat format = DatasetFormat::kObjects;
    std::optional<Bytes> block_size{};
    std::optional<DatasetRecords> records{};
    DatasetAccess access = DatasetAccess::kSdk;
    std::string mount_path{};  // of access Files
    Sampling sampling = Sampling::kEpochShuffle;
    Contract contract = Contract::kExact;
    ContractParameters parameters;                 // of `contract`
    std::optional<ClairvoyantSpec> clairvoyant{};  // with placement Clairvoyant
    std::optional<Bytes> total;  // from the Dataset's status; none: not listed yet
    std::uint64_t samples = 0;   // likewise
    // Nodes fetch its samples from each other. Never from a volume, whose revision differs by node.
    bool peers = true;
    // spec.consistency: age of another attempt's listing from which on it is not used; 0: none is;
    // none: any age.
    std::optional<std::int64_t> listing_age_seconds_max{};

    bool operator==(const ResolvedDataset&) const = default;
};

// Reason of the blocker: a Dataset of another namespace is not shared with the job's.
inline constexpr std::string_view kNotShared = "NotShared";

// Why a job cannot start yet; empty texts: it can.
struct Blocker {
    std::string reason;   // "DatasetNotFound"
    std::string message;  // one sentence

    [[nodiscard]] bool empty() const { return reason.empty(); }

    bool operator==(const Blocker&) const = default;
};

struct ResolvedDatasets {
    // In the order of the spec; complete if there is no blocker or if the attempt goes on.
    std::vector<ResolvedDataset> datasets;
    Blocker blocker;  // the first one
    // The blocker appeared while an attempt reads: this attempt continues, a new one would not
    // start.
    bool goes_on = false;

    bool operator==(const ResolvedDatasets&) const = default;
};

// `datasets`: at least those that the job names and that exist. `labels`: of the job's namespace;
// unknown labels: no dataset is shared with it. Blockers: DatasetNotFound, NotShared (a Dataset of
// another namespace that is not shared with the job's, or does not exist), DatasetInvalid,
// DatasetNotPacked (its spec.packing is not complete; an attempt that reads it goes on),
// SecretsDiffer (pods can carry one set of credentials for S3 and one for web servers; Datasets of
// other namespaces need none), AccessUnsupported (access S3 to a directory or web server, access SDK to
// blocks, or one bucket at two endpoints).
ResolvedDatasets resolve_datasets(
    const TrainingJob& job,
    const std::vector<Dataset>& datasets,
    const std::optional<TextMap>& labels = std::nullopt);

// What a Dataset says of itself. Its name is the Dataset's, and the job's settings have their
// defaults. The Dataset has a source.
ResolvedDataset resolve_dataset(const Dataset& dataset);

// Whether `resolved` contains a dataset with this uid.
bool has_dataset(const ResolvedDatasets& resolved, const std::string& uid);

// Whether all ranks must read one revision of the dataset: several ranks read it from an object
// store. ETags of a directory contain inode numbers, which differ between nodes for the same file.
// Never with a workloadRef: its pods come and go without attempts, so no moment ends a pin.
bool is_pinned(const TrainingJob& job, const ResolvedDataset& dataset);

// For a Dataset of another namespace that names a Secret: a sentence on how a Secret in the job's
// own namespace would help when the origin refuses (never at a web server). Else empty.
std::string tell_credentials(const ResolvedDataset& dataset, const std::string& job_namespace);

// Directory name of an inline storageUri: equal for jobs of one namespace that read it from the
// same endpoint with the same Secret. Jobs with another Secret get another directory, so they cannot
// read what this one has fetched.
std::string inline_dataset_uid(const std::string& ns, const JobDataset& dataset);

struct ResolvedPool {
    std::string name;  // empty: the job runs without a cache
    std::int64_t reserved_free_percent = 15;
    // Why there is no pool. `waits`: the job must not start, because the pool it names may still be
    // created.
    Blocker blocker;
    bool waits = false;

    bool operator==(const ResolvedPool&) const = default;
};

// Chooses the pool that the job names; else that of the namespace's only CacheQuota; else the
// cluster's only pool; else the one named "default". Without any of these the job runs without a
// cache, so a missing cache does not stop its training. `quotas`: of the job's namespace.
// An attempt keeps its pool, or none (status.attemptPool), until it ends or is suspended: its pods
// mount that pool, whatever could be chosen now.
ResolvedPool resolve_pool(
    const TrainingJob& job,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas);

}  // namespace stoker::control
