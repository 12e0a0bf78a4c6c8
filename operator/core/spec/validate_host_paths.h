#pragma once

#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/spec/validate.h"

namespace stoker::control {

// Finds host directories of the job's pods, apart from Stoker's own, that equal, contain or lie in
// the directory of a CachePool (`pool_paths`): they would expose the cache of other namespaces.
// Does not detect symbolic links on a node. Pure.
std::vector<FieldError> validate_host_paths(
    const PodOverlay& pod,
    const std::vector<ResolvedDataset>& datasets,
    const std::vector<std::string>& pool_paths);

}  // namespace stoker::control
