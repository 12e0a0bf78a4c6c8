#include "sidecar/origin/object_dialect.h"

#include <fmt/core.h>

#include "sidecar/origin/retry.h"
#include "sidecar/origin/sleep_unless_stopped.h"

namespace stoker::sidecar {

std::optional<OriginFailure> check_extent(
    const ExpectedBytes& expected, int status, const http::Headers& headers) {
    const bool is_part = expected.range && status == 206;
    if (is_part) {
        const auto& range = *expected.range;
        const std::string want = fmt::format(
            "bytes {}-{}/{}", range.offset, range.offset + range.length - 1, expected.size_bytes);
        const std::string* got = http::find_header(headers, "Content-Range");
        if (got == nullptr || *got != want) {
            return conflict(fmt::format(
                "the origin sent '{}' instead of '{}'", got == nullptr ? "" : *got, want));
        }
    }
    const std::uint64_t due = is_part ? expected.range->length : expected.size_bytes;
    const std::string* length = http::find_header(headers, "Content-Length");
    if (length != nullptr && *length != std::to_string(due)) {
        return conflict(fmt::format(
            "changed at the origin: {} bytes now, {} when it was listed", *length, due));
    }
    return std::nullopt;
}

void count_request(
    const ListingContext& context, std::string_view operation, const std::string& outcome) {
    if (context.options.metrics != nullptr) {
        context.options.metrics->requests.with({std::string{operation}, outcome})->add();
    }
}

void count_retry(const ListingContext& context) {
    if (context.options.metrics != nullptr) {
        context.options.metrics->retries.add();
    }
}

std::optional<Error> wait_for_retry(
    ListingContext& context,
    std::uint32_t attempt,
    const OriginFailure& failure,
    const std::stop_token& stop) {
    const auto delay = next_delay(
        context.options.retry, {attempt, failure.may_pass, failure.retry_after}, context.random);
    if (delay && sleep_unless_stopped(*delay, stop)) {
        count_retry(context);
        return std::nullopt;
    }
    const ErrorCode code = stop.stop_requested() ? ErrorCode::kCancelled : failure.error.code;
    const std::string tries = attempt > 1 ? fmt::format(" (after {} attempts)", attempt) : "";
    return Error{code, failure.error.message + tries};
}

void set_timeouts(http::HttpRequest& request, const OriginOptions& options) {
    request.connect_timeout = options.connect_timeout;
    request.total_timeout = Duration::zero();
    request.idle_timeout = options.stall_timeout;
}

}  // namespace stoker::sidecar
