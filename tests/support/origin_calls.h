#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
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

// Fetches again while the bytes do not match their stored checksum, as the sidecar does.
// The result's `requests` counts the requests of all these fetches.
inline Result<sidecar::OriginBytes> fetch_now(
    sidecar::Origin& origin, sidecar::OriginFetch request) {
    for (std::uint32_t requests = 0;;) {
        auto bytes = start_fetch(origin, request).get();
        if (bytes) {
            requests = bytes->requests += requests;
        }
        if (!bytes || !bytes->stored_crc32c || *bytes->stored_crc32c == crc32c(bytes->payload)) {
            return bytes;
        }
        request.attempts = bytes->attempts;
    }
}

inline std::string text_of(const sidecar::OriginBytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.payload.data()), bytes.payload.size()};
}

}  // namespace stoker::test
