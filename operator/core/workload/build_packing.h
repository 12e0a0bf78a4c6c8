#pragma once

#include <string>
#include <string_view>

#include "operator/api/dataset.h"
#include "operator/api/job_manifest.h"
#include "operator/core/workload/build_job.h"

// The Job that runs `stoker pack` for a Dataset with spec.packing, in its namespace (docs/adr/0029).
// Pure: equal inputs, equal manifests.
namespace stoker::control {

inline constexpr std::string_view kPackingLabel = "stoker.dev/packing";  // the Dataset's uid

// Number of retries before the Job fails.
inline constexpr std::int32_t kPackingRetries = 6;

// "<dataset>-pack-<12 hex digits>", at most 63 characters. The digits are a hash of the Dataset's uid
// and of everything in its spec that the Job depends on; the operator's settings are not part of it.
std::string packing_job_name(const Dataset& dataset);

// Builds that Job. Precondition: the Dataset is valid and has spec.packing.
JobManifest build_packing(const Dataset& dataset, const JobSettings& settings);

}  // namespace stoker::control
