#include "operator/core/spec/resolve.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/base/fnv1a.h"
#include "common/base/saturating.h"
#include "common/domain/http_uri.h"
#include "operator/core/spec/check_origins.h"
#include "operator/core/spec/job_state.h"
#include "operator/core/spec/packing.h"
#include "operator/core/spec/validate.h"

namespace stoker::control {

namespace {

const Dataset* find_dataset(const std::vector<Dataset>& datasets, const ObjectKey& key) {
    const auto found = std::find_if(datasets.begin(), datasets.end(), [&](const Dataset& dataset) {
        return dataset.meta.key() == key;
    });
    return found == datasets.end() ? nullptr : &*found;
}

const CachePool* find_pool(const std::vector<CachePool>& pools, const std::string& name) {
    const auto found = std::find_if(pools.begin(), pools.end(), [&](const CachePool& pool) {
        return pool.meta.name == name && !pool.meta.deleting_since;
    });
    return found == pools.end() ? nullptr : &*found;
}

// Takes the job's settings for its own use of the dataset.
void take_stream(const JobDataset& wanted, ResolvedDataset& result) {
    result.access = wanted.access;
    result.mount_path = wanted.mount_path.value_or("");
    result.sampling = wanted.sampling;
    result.contract = wanted.contract;
    const auto parameters = wanted.parameters.find(wanted.contract);
    if (parameters != wanted.parameters.end()) {
        result.parameters = parameters->second;
    }
    if (wanted.placement == SamplePlacement::kClairvoyant) {
        result.clairvoyant = wanted.clairvoyant.value_or(ClairvoyantSpec{});
    }
}

ResolvedDataset resolve_inline(const TrainingJob& job, const JobDataset& wanted) {
    ResolvedDataset result;
    result.name = wanted.name;
    result.ns = job.meta.ns;
    result.uid = inline_dataset_uid(job.meta.ns, wanted);
    result.source.storage_uri = wanted.storage_uri.value_or("");
    result.source.endpoint = wanted.endpoint;
    result.source.region = wanted.region;
    result.source.path_style = wanted.path_style;
    result.source.secret_ref = wanted.secret_ref;
    result.source.ca_bundle = wanted.ca_bundle;
    take_stream(wanted, result);
    return result;
}

ResolvedDataset resolve_reference(const JobDataset& wanted, const Dataset& dataset) {
    ResolvedDataset result = resolve_dataset(dataset);
    result.name = wanted.name;
    take_stream(wanted, result);
    return result;
}

bool is_shared(const Dataset& dataset, const std::optional<TextMap>& labels) {
    return labels && dataset.spec.shared_with && selects(*dataset.spec.shared_with, *labels);
}

// Whether the running attempt was started with this very Dataset: only the operator writes the
// status.
bool is_read_now(const TrainingJob& job, const JobDataset& wanted, const Dataset& dataset) {
    return std::ranges::any_of(job.status.datasets, [&](const JobDatasetStatus& status) {
        return status.name == wanted.name && status.uid == dataset.meta.uid;
    });
}

// The message is the same whether or not the Dataset exists.
Blocker not_shared(const ObjectKey& dataset, const std::string& ns) {
    return {
        std::string{kNotShared},
        fmt::format(
            "Dataset {} is not shared with namespace {}. Its owner shares it with "
            "spec.sharing.namespaceSelector, which must select the labels of namespace {}; the job "
            "starts then.",
            to_string(dataset),
            ns,
            ns)};
}

Blocker not_found(const ObjectKey& dataset) {
    return {
        "DatasetNotFound",
        fmt::format(
            "Dataset {} does not exist in namespace {}; the job starts when it appears.",
            dataset.name,
            dataset.ns)};
}

Blocker check_dataset(const Dataset& dataset, bool foreign) {
    const std::vector<FieldError> errors = validate(dataset);
    return errors.empty() ? Blocker{}
                          : Blocker{
                                "DatasetInvalid",
                                fmt::format(
                                    "Dataset {} is invalid: {}.",
                                    foreign ? to_string(dataset.meta.key()) : dataset.meta.name,
                                    to_string(errors))};
}

// Names of the pools in the namespace's quotas.
std::set<std::string> quota_pools(const std::vector<CacheQuota>& quotas) {
    std::set<std::string> names;
    for (const CacheQuota& quota : quotas) {
        if (!quota.meta.deleting_since) {
            names.insert(quota.spec.pool_ref);
        }
    }
    return names;
}

ResolvedPool without_pool(std::string reason, std::string message) {
    ResolvedPool result;
    result.blocker = {std::move(reason), std::move(message)};
    return result;
}

ResolvedPool with(const CachePool& pool) {
    return {pool.meta.name, pool.spec.reserved_free_percent, {}, false};
}

ResolvedPool use(const CachePool& pool) {
    const std::vector<FieldError> errors = validate(pool);
    return errors.empty()
               ? with(pool)
               : without_pool(
                     "PoolInvalid",
                     fmt::format(
                         "CachePool {} is invalid: {}.", pool.meta.name, to_string(errors)));
}

ResolvedPool choose(const std::vector<CachePool>& pools, const std::vector<CacheQuota>& quotas) {
    const std::set<std::string> from_quota = quota_pools(quotas);
    if (from_quota.size() == 1) {
        const CachePool* pool = find_pool(pools, *from_quota.begin());
        return pool != nullptr
                   ? use(*pool)
                   : without_pool(
                         "PoolNotFound",
                         fmt::format(
                             "CachePool {} of the namespace's CacheQuota does not exist.",
                             *from_quota.begin()));
    }
    std::vector<const CachePool*> usable;
    for (const CachePool& pool : pools) {
        if (!pool.meta.deleting_since) {
            usable.push_back(&pool);
        }
    }
    if (usable.empty()) {
        return without_pool(
            "NoPool",
            "There is no CachePool, so the job runs without a cache; an administrator can create "
            "one.");
    }
    if (usable.size() == 1 && from_quota.empty()) {
        return use(*usable.front());
    }
    const CachePool* fallback = find_pool(pools, "default");
    return fallback != nullptr && from_quota.empty()
               ? use(*fallback)
               : without_pool(
                     "PoolAmbiguous",
                     "There is more than one CachePool; name one in spec.cache.poolRef. Until then "
                     "the job runs without a cache.");
}

// The outcome for one entry with a reference. `stops`: a running attempt must stop reading it.
struct Reference {
    Blocker blocker;
    bool stops = false;
    const Dataset* dataset = nullptr;
};

Reference find_reference(
    const TrainingJob& job,
    const JobDataset& wanted,
    const std::vector<Dataset>& datasets,
    const std::optional<TextMap>& labels) {
    const ObjectKey key = dataset_key(job.meta.ns, wanted);
    const bool foreign = key.ns != job.meta.ns;
    const Dataset* dataset = find_dataset(datasets, key);
    if (dataset == nullptr) {
        return {foreign ? not_shared(key, job.meta.ns) : not_found(key), true, nullptr};
    }
    const bool shared = !foreign || is_shared(*dataset, labels);
    if (!shared && !is_read_now(job, wanted, *dataset)) {
        return {not_shared(key, job.meta.ns), true, nullptr};
    }
    if (Blocker invalid = check_dataset(*dataset, foreign); !invalid.empty()) {
        return {std::move(invalid), true, nullptr};
    }
    if (shared && !is_packed(*dataset)) {
        return {{"DatasetNotPacked", tell_packing(*dataset, foreign)}, false, dataset};
    }
    return {shared ? Blocker{} : not_shared(key, job.meta.ns), false, dataset};
}

}  // namespace

std::string inline_dataset_uid(const std::string& ns, const JobDataset& dataset) {
    const std::string text = fmt::format(
        "{}\n{}\n{}\n{}",
        ns,
        dataset.storage_uri.value_or(""),
        dataset.endpoint,
        dataset.secret_ref.value_or(""));
    return fmt::format("inline-{:016x}", fnv1a(text));
}

namespace {

std::optional<std::int64_t> listing_age_seconds_max(const DatasetSpec& spec) {
    if (spec.consistency == Consistency::kImmutable) {
        return std::nullopt;
    }
    return spec.ttl_seconds.value_or(0);
}

}  // namespace

ResolvedDataset resolve_dataset(const Dataset& dataset) {
    ResolvedDataset result;
    result.name = dataset.meta.name;
    result.ns = dataset.meta.ns;
    result.uid = dataset.meta.uid;
    result.object_name = dataset.meta.name;
    result.source = dataset.spec.sources.front();
    result.format = dataset.spec.format;
    result.block_size = dataset.spec.block_size;
    result.records = dataset.spec.records;
    result.peers = shares_by_peers(dataset.spec);
    result.listing_age_seconds_max = listing_age_seconds_max(dataset.spec);
    if (dataset.status.total_bytes) {
        result.total = bytes_of(*dataset.status.total_bytes);
        result.samples = bytes_of(dataset.status.samples.value_or(0)).count();
    }
    return result;
}

ResolvedDatasets resolve_datasets(
    const TrainingJob& job,
    const std::vector<Dataset>& datasets,
    const std::optional<TextMap>& labels) {
    ResolvedDatasets result;
    bool stops = false;
    for (const JobDataset& wanted : job.spec.datasets) {
        if (!wanted.dataset_ref) {
            result.datasets.push_back(resolve_inline(job, wanted));
            continue;
        }
        Reference found = find_reference(job, wanted, datasets, labels);
        if (result.blocker.empty()) {
            result.blocker = std::move(found.blocker);
        }
        stops |= found.stops;
        if (found.dataset != nullptr) {
            result.datasets.push_back(resolve_reference(wanted, *found.dataset));
        }
    }
    result.goes_on = !stops && !result.blocker.empty();
    if (result.blocker.empty()) {
        result.blocker = check_secrets(result.datasets, job.meta.ns);
    }
    if (result.blocker.empty()) {
        result.blocker = check_access(result.datasets);
    }
    return result;
}

bool is_pinned(const TrainingJob& job, const ResolvedDataset& dataset) {
    return !job.spec.workload_ref && job.spec.trainer.node_count > 1 && !dataset.source.volume;
}

std::string tell_credentials(const ResolvedDataset& dataset, const std::string& job_namespace) {
    if (dataset.ns == job_namespace || !dataset.source.secret_ref) {
        return {};
    }
    if (domain::is_http_uri(dataset.source.storage_uri)) {
        return fmt::format(
            " (namespace {} fetches the dataset with its own Secret; a web server of another "
            "namespace gets none of the job's)",
            dataset.ns);
    }
    return fmt::format(
        " (namespace {} fetches the dataset with its own Secret; with a Secret {} in namespace {} "
        "the job could read the origin itself meanwhile)",
        dataset.ns,
        *dataset.source.secret_ref,
        job_namespace);
}

bool has_dataset(const ResolvedDatasets& resolved, const std::string& uid) {
    return std::ranges::any_of(
        resolved.datasets, [&](const ResolvedDataset& it) { return it.uid == uid; });
}

namespace {

// The pool of the attempt that continues; none: the next attempt may choose.
std::optional<AttemptPool> pool_of_attempt(const TrainingJob& job) {
    const TrainingJobStatus& status = job.status;
    const Condition* state = find_condition(status.conditions, "Finished");
    const bool suspended =
        job.spec.suspend || (state != nullptr && state->reason == to_string(JobState::kSuspended));
    const bool is_given =
        status.attempt_pool && status.attempt > 0 && status.attempt_pool->attempt == status.attempt;
    return is_given && !suspended ? status.attempt_pool : std::nullopt;
}

// Not validated: the attempt's pods mount it already.
ResolvedPool keep(const std::string& name, const std::vector<CachePool>& pools) {
    const CachePool* pool = find_pool(pools, name);
    if (pool == nullptr) {
        return without_pool(
            "PoolNotFound",
            fmt::format(
                "CachePool {}, which the attempt began with, does not exist any more; the attempt "
                "goes on without grants.",
                name));
    }
    return with(*pool);
}

ResolvedPool choose_anew(
    const TrainingJob& job,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas) {
    const CacheSpec& cache = job.spec.cache;
    if (!cache.pool_ref) {
        return choose(pools, quotas);
    }
    if (const CachePool* pool = find_pool(pools, *cache.pool_ref)) {
        return use(*pool);
    }
    ResolvedPool result = without_pool(
        "PoolNotFound",
        fmt::format(
            "CachePool {} does not exist; the job starts when it appears.", *cache.pool_ref));
    result.waits = true;
    return result;
}

}  // namespace

ResolvedPool resolve_pool(
    const TrainingJob& job,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas) {
    if (job.spec.cache.mode == CacheMode::kOff) {
        return without_pool("Off", "The job asked for no cache (cache.mode Off).");
    }
    const std::optional<AttemptPool> given = pool_of_attempt(job);
    if (given && !given->name.empty()) {
        return keep(given->name, pools);
    }
    ResolvedPool result = choose_anew(job, pools, quotas);
    if (given && !result.name.empty()) {
        return without_pool(
            "NoPool",
            fmt::format(
                "The attempt began without a CachePool, so it runs without a cache; the next one "
                "gets CachePool {}.",
                result.name));
    }
    result.waits = result.waits && !given;
    return result;
}

}  // namespace stoker::control
