#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "sidecar/origin/http_location.h"
#include "sidecar/origin/object_dialect.h"

namespace stoker::sidecar {

// Origin::list() for a web server: reads the index, and sends HEAD requests, up to 64 at a time,
// for versions and sizes that the index lacks; each request with retries. Blocking. Besides the
// listing, holds the keys of the objects to ask for. kInvalidArgument: an invalid line of the
// index, a size that is not the server's, or an object without ETag and Last-Modified.
Result<domain::Listing> list_http(
    const HttpLocation& location,
    ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
