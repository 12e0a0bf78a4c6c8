#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/http/http_client.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/s3_location.h"

namespace stoker::sidecar {

// Dependencies of a listing; all must outlive the call.
struct S3ListingContext {
    const S3Location& location;
    const OriginOptions& options;
    CredentialSource& credentials;
    http::HttpClient& client;
    const Clock& clock;
    Prng random;
};

// Origin::list() for S3: page by page, each page with retries. Blocking. kInvalidArgument: an
// object without an ETag.
Result<domain::Listing> list_s3(
    S3ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    std::stop_token stop);

}  // namespace stoker::sidecar
