#pragma once

#include <stop_token>
#include <vector>

#include "common/base/result.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// Fetches all objects at once and waits for them; returns results in the order of `wanted`. Fetches
// bytes again that do not match their stored checksum. After a stop it returns at once, with
// kCancelled for each object that has not arrived; bytes that arrive later are dropped. Blocking:
// must not run on a thread of the origin.
std::vector<Result<OriginBytes>> fetch_all(
    Origin& origin, std::vector<OriginFetch> wanted, const std::stop_token& stop);

Result<OriginBytes> fetch_one(Origin& origin, OriginFetch wanted, const std::stop_token& stop);

}  // namespace stoker::sidecar
