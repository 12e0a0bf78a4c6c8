#pragma once

#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/spec/validate.h"

namespace stoker::control {

// Every directory of the nodes that the job's pods would mount besides Stoker's own, and that is,
// holds or lies in the directory of a CachePool (`pool_paths`): it would reach the cache of other
// namespaces. A symbolic link on a node is not seen. Pure.
std::vector<FieldError> validate_host_paths(
    const PodOverlay& pod,
    const std::vector<ResolvedDataset>& datasets,
    const std::vector<std::string>& pool_paths);

}  // namespace stoker::control
