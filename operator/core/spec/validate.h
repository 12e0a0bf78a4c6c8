#pragma once

#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/training_job.h"

// The CRDs' rules again, for clusters with older CRDs than the operator and for tools without an
// API server. Pure, thread-safe. tests/contract holds the CRDs' rules; rules in both places have
// the same message.
namespace stoker::control {

// One invalid field: "spec.cache.minBytes", "minBytes must not be more than maxBytes".
struct FieldError {
    std::string path;
    std::string message;

    bool operator==(const FieldError&) const = default;
};

// Returns every invalid field, in the order of the spec; empty: the object is valid.
std::vector<FieldError> validate(const TrainingJob& job);
std::vector<FieldError> validate(const Dataset& dataset);
std::vector<FieldError> validate(const DatasetWarmup& warmup);
std::vector<FieldError> validate(const CachePool& pool);
std::vector<FieldError> validate(const CacheQuota& quota);

// Formats errors for a condition: "path: message; path: message".
std::string to_string(const std::vector<FieldError>& errors);

// Longest name of a TrainingJob: with the suffix "-a9999-9999" it must fit into a host name of 63
// characters.
inline constexpr std::size_t kTrainingJobNameLengthMax = 52;
inline constexpr std::int32_t kNodeCountMax = 10'000;
inline constexpr std::int64_t kProcessesPerNodeMax = 1024;

}  // namespace stoker::control
