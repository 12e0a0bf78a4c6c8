#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/origin/origin.h"

// Synchronous versions of Origin's asynchronous calls.
namespace stoker::test {

using FetchFuture = std::future<Result<sidecar::OriginBytes>>;

inline FetchFuture start_fetch(sidecar::Origin& origin, sidecar::OriginFetch request) {
    auto promise = std::make_shared<std::promise<Result<sidecar::OriginBytes>>>();
    FetchFuture future = promise->get_future();
    origin.fetch(std::move(request), [promise](Result<sidecar::OriginBytes> result) {
        promise->set_value(std::move(result));
    });
    return future;
}

inline Result<sidecar::OriginBytes> fetch_now(
    sidecar::Origin& origin, sidecar::OriginFetch request) {
    return start_fetch(origin, std::move(request)).get();
}

inline std::string text_of(const sidecar::OriginBytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.payload.data()), bytes.payload.size()};
}

}  // namespace stoker::test
