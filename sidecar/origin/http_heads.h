#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "sidecar/origin/http_location.h"
#include "sidecar/origin/object_dialect.h"

namespace stoker::sidecar {

// Size of an object in the argument of ask_heads() if only the server knows the size.
constexpr std::uint64_t kUnknownBytes = UINT64_MAX;

// Sends a HEAD request for each object of `wanted`, up to 64 at a time and with retries, and adds
// the objects with size and version to `found`. Ends with the first error, which names the object.
// Blocking; calls `progress` with the size of `found`. Errors: as list_http().
Status ask_heads(
    const HttpLocation& location,
    ListingContext& context,
    const domain::Listing& wanted,
    domain::Listing& found,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
