#include "sidecar/origin/fetch_all.h"

#include <latch>
#include <memory>
#include <utility>

#include "common/base/crc32c.h"

namespace stoker::sidecar {

namespace {

bool is_damaged(const Result<OriginBytes>& bytes) {
    return bytes && bytes->stored_crc32c && *bytes->stored_crc32c != crc32c(bytes->payload);
}

std::vector<Result<OriginBytes>> fetch_once(
    Origin& origin, const std::vector<OriginFetch>& wanted) {
    const Error unanswered{ErrorCode::kInternal, "no answer"};
    std::vector<Result<OriginBytes>> results(wanted.size(), fail(unanswered));
    // Shared, because count_down() may still run after wait() has returned.
    const auto left = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(wanted.size()));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        origin.fetch(wanted[i], [&results, left, i](Result<OriginBytes> bytes) {
            results[i] = std::move(bytes);
            left->count_down();
        });
    }
    left->wait();
    return results;
}

}  // namespace

std::vector<Result<OriginBytes>> fetch_all(Origin& origin, std::vector<OriginFetch> wanted) {
    std::vector<Result<OriginBytes>> results = fetch_once(origin, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        while (is_damaged(results[i])) {
            wanted[i].attempts = results[i]->requests;
            results[i] = std::move(fetch_once(origin, {wanted[i]}).front());
        }
    }
    return results;
}

Result<OriginBytes> fetch_one(Origin& origin, OriginFetch wanted) {
    return std::move(fetch_all(origin, {std::move(wanted)}).front());
}

}  // namespace stoker::sidecar
