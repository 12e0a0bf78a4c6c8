#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace stoker::test {

// One thing that a fake S3 server does wrong, and to which requests. Unset effects leave the answer
// as it should be.
struct FakeS3Fault {
    // To whom.
    std::string operation{};  // "get", "list"; empty: both
    std::string
        key{};  // exact, or a prefix followed by '*'; empty: all. For lists: the prefix asked for
    int skip = 0;   // so many matching requests are served properly first
    int times = 1;  // then so many are not; -1: all

    // What.
    int status = 0;             // answer with this status and an S3 error document
    std::string code{};         // of the error document; empty: one that fits the status
    std::string retry_after{};  // header of that answer
    Duration delay{};           // before the first byte
    std::optional<std::uint64_t> cut_after{};  // bytes of the body, then hang up
    bool reset = false;                  // hang up with a TCP reset (after cut_after, or at once)
    std::string etag{};                  // instead of the right one
    bool corrupt = false;                // other bytes of the same length
    std::int64_t length_change = 0;      // the object is longer or shorter than listed, and says so
    std::uint64_t bytes_per_second = 0;  // pace of this answer
    bool ignore_if_match = false;
    bool ignore_range = false;

    [[nodiscard]] bool matches(
        std::string_view request_operation, std::string_view request_key) const;
};

// "operation=get,key=a/*,status=503,retry_after=1,times=2": names as above; delay in ms is
// "delay_ms". The value runs to the next comma.
Result<FakeS3Fault> parse_fault(std::string_view text);

}  // namespace stoker::test
