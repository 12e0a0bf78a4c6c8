#pragma once

#include <vector>

#include "common/base/result.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// Fetches all objects at once and waits for them; results in the order of `wanted`. Bytes that do
// not match their stored checksum are fetched again. Blocking: not for a thread of the origin.
std::vector<Result<OriginBytes>> fetch_all(Origin& origin, std::vector<OriginFetch> wanted);

Result<OriginBytes> fetch_one(Origin& origin, OriginFetch wanted);

}  // namespace stoker::sidecar
