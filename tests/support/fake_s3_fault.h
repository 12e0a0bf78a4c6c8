#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace stoker::test {

// One fault of the fake S3 server, and the requests that it affects. Unset effects leave the answer
// correct.
struct FakeS3Fault {
    // Affected requests.
    std::string operation{};  // "get", "list"; empty: both
    std::string
        key{};  // exact, or a prefix followed by '*'; empty: all. For lists: the requested prefix
    int skip = 0;   // matching requests to serve properly first
    int times = 1;  // number of requests to fail after those; -1: all

    // Effects.
    int status = 0;             // answer with this status and an S3 error document
    std::string code{};         // of the error document; empty: the usual one of the status
    std::string retry_after{};  // header of that answer
    Duration delay{};           // before the first byte
    std::optional<std::uint64_t> cut_after{};  // bytes of the body to send before closing
    bool reset = false;                  // close with a TCP reset (after cut_after, or at once)
    std::string etag{};                  // sent in place of the right ETag
    bool corrupt = false;                // wrong bytes of the same length
    std::int64_t length_change = 0;      // added to the listed length, also in Content-Length
    std::uint64_t bytes_per_second = 0;  // speed of this answer
    bool ignore_if_match = false;
    bool ignore_range = false;

    [[nodiscard]] bool matches(
        std::string_view request_operation, std::string_view request_key) const;
};

// "operation=get,key=a/*,status=503,retry_after=1,times=2": names as above; "delay_ms" is in ms. A value
// ends at the next comma.
Result<FakeS3Fault> parse_fault(std::string_view text);

}  // namespace stoker::test
