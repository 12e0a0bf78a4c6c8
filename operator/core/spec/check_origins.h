#pragma once

#include <string>
#include <vector>

#include "operator/core/spec/resolve.h"

// Whether one pod can read the origins of its datasets. Pure.
namespace stoker::control {

// Blocker SecretsDiffer: the trainer's environment has room for one Secret for S3 and one for web
// servers. `ns`: the job's namespace; Datasets of other namespaces need no Secret in it.
Blocker check_secrets(const std::vector<ResolvedDataset>& datasets, const std::string& ns);

// Blocker AccessUnsupported: one S3 endpoint serves all the pod's datasets, by bucket and key.
Blocker check_access(const std::vector<ResolvedDataset>& datasets);

}  // namespace stoker::control
