#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "sidecar/origin/http_location.h"
#include "sidecar/origin/object_dialect.h"

namespace stoker::sidecar {

// Origin::list() for a web server: reads the index, and asks with HEAD requests, up to 64 at a time, for
// the versions and sizes that it lacks; each request with retries. Blocking. Holds the keys of the
// objects to ask for besides the listing. kInvalidArgument: a line of the index, a size other than the
// server's, or an object without ETag and Last-Modified.
Result<domain::Listing> list_http(
    const HttpLocation& location,
    ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
