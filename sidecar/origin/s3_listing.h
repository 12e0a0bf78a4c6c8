#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "sidecar/origin/object_dialect.h"
#include "sidecar/origin/s3_location.h"

namespace stoker::sidecar {

// Origin::list() for S3: page by page, each page with retries. Blocking. kInvalidArgument: an
// object without an ETag.
Result<domain::Listing> list_s3(
    const S3Location& location,
    ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    std::stop_token stop);

}  // namespace stoker::sidecar
