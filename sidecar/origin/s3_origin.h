#pragma once

#include <cstdint>
#include <memory>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/s3_location.h"

namespace stoker::sidecar {

// An origin behind the S3 API; arguments and errors as make_remote_origin().
Result<std::unique_ptr<Origin>> make_s3_origin(
    S3Location location,
    const OriginOptions& options,
    std::unique_ptr<CredentialSource> credentials,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar
