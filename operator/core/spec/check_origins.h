#pragma once

#include <string>
#include <vector>

#include "operator/core/spec/resolve.h"

// Whether one pod can read the origins of its datasets. Pure.
namespace stoker::control {

// SecretsDiffer: the trainer's environment carries one Secret for S3 and one for web servers. `ns`: the
// job's namespace; Datasets of others need no Secret there.
Blocker check_secrets(const std::vector<ResolvedDataset>& datasets, const std::string& ns);

// AccessUnsupported. The pod's S3 endpoint serves all its datasets, and tells them apart by bucket and key.
Blocker check_access(const std::vector<ResolvedDataset>& datasets);

}  // namespace stoker::control
