#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

// The index of a dataset on an HTTP server, which has no call that lists files: a text with a line
// for each object, "KEY", "SIZE<tab>KEY" or "SIZE<tab>KEY<tab>VERSION" (docs/design/origin.md). Pure.
namespace stoker::domain {

inline constexpr std::string_view kHttpIndexName = "index.txt";  // unless the dataset has another
inline constexpr std::size_t kHttpVersionBytesMax = 1024;
// The latest Unix time that is a version, in the year 2255: WallTime ends in 2262, and
// milliseconds are above it.
inline constexpr std::uint64_t kHttpSecondsMax = 9'000'000'000;

// The views are valid during the call that passes them.
struct HttpIndexEntry {
    std::string_view key;                     // as is_http_key() has it
    std::optional<std::uint64_t> size_bytes;  // nullopt: ask the server
    std::string version;                      // of http_version_of_column(); empty: ask the server
};

// Whether the key names an object below the root in one way only: '/'-separated parts, none of them
// empty, "." or "..", without control characters.
bool is_http_key(std::string_view key);

// The version that the third column gives: an ETag with its quotes ('"abc"', 'W/"abc"') stays; a Unix
// time ("1700000000.25", as `find -printf %T@` prints it) becomes "@1700000000". nullopt: neither,
// or above kHttpSecondsMax.
std::optional<std::string> http_version_of_column(std::string_view column);

// Reads an index piece by piece. Holds the last, incomplete line only. Not thread-safe.
class HttpIndexReader {
public:
    // Takes one entry; its error ends the reading.
    using Take = std::function<Status(const HttpIndexEntry&)>;

    // `name`: of the index itself, which is left out of the entries, and for messages.
    explicit HttpIndexReader(std::string name);

    // kInvalidArgument: a line of another form or above 64 KiB, a key that is_http_key() refuses, or
    // the index's own line twice (so that no index is without end); the message has the line's
    // number. Errors of `take` are prefixed with it, too.
    Status read(std::string_view piece, const Take& take);

    // The end of the index: its last line may lack the line feed. kInvalidArgument: also without any
    // line.
    Status finish(const Take& take);

private:
    Status take_line(std::string_view line, const Take& take);
    Status take_entry(std::string_view line, const Take& take);

    const std::string name_;
    std::string rest_;  // of the last piece
    std::uint64_t lines_ = 0;
    bool has_own_line_ = false;
};

}  // namespace stoker::domain
