#pragma once

#include <stop_token>
#include <vector>

#include "common/base/result.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// Fetches all objects at once and waits for them; results in the order of `wanted`. Bytes that do
// not match their stored checksum are fetched again. Once stopped it returns at once: kCancelled for
// each object that has not arrived, whose bytes are dropped when they do. Blocking: not for a thread
// of the origin.
std::vector<Result<OriginBytes>> fetch_all(
    Origin& origin, std::vector<OriginFetch> wanted, const std::stop_token& stop);

Result<OriginBytes> fetch_one(Origin& origin, OriginFetch wanted, const std::stop_token& stop);

}  // namespace stoker::sidecar
