#pragma once

#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

#include "sidecar/origin/origin.h"

namespace stoker::test {

// Collects the objects that Origin::list() reports.
inline Result<std::vector<domain::ListedObject>> list_objects(
    sidecar::Origin& origin,
    const std::function<void(std::uint64_t)>& progress = {},
    std::stop_token stop = {}) {
    STOKER_TRY(const auto listing, origin.list(progress, std::move(stop)));
    return listing.objects();
}

}  // namespace stoker::test
