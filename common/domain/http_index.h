#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

// The index of a dataset on an HTTP server, because HTTP cannot list files: a text with one line
// per object, "KEY", "SIZE<tab>KEY" or "SIZE<tab>KEY<tab>VERSION" (docs/design/origin.md). Pure.
namespace stoker::domain {

inline constexpr std::string_view kHttpIndexName = "index.txt";  // the default
inline constexpr std::size_t kHttpVersionBytesMax = 1024;
// The latest Unix time accepted as a version, in the year 2255: WallTime ends in 2262, and times in
// milliseconds are above this.
inline constexpr std::uint64_t kHttpSecondsMax = 9'000'000'000;

// The views are valid during the call that passes them.
struct HttpIndexEntry {
    std::string_view key;                     // satisfies is_http_key()
    std::optional<std::uint64_t> size_bytes;  // nullopt: ask the server
    std::string version;                      // of http_version_of_column(); empty: ask the server
};

// Whether the key names an object below the root in one way only: '/'-separated parts, none of them
// empty, "." or "..", without control characters.
bool is_http_key(std::string_view key);

// The version that the third column states: an ETag with its quotes ('"abc"', 'W/"abc"') stays as
// it is; a Unix time ("1700000000.25", as `find -printf %T@` prints it) becomes "@1700000000".
// nullopt: neither of these, or above kHttpSecondsMax.
std::optional<std::string> http_version_of_column(std::string_view column);

// Reads an index piece by piece. Buffers only the last, incomplete line. Not thread-safe.
class HttpIndexReader {
public:
    // Receives one entry; an error from it ends the reading.
    using Take = std::function<Status(const HttpIndexEntry&)>;

    // `name`: name of the index itself, which is not an entry; also used in messages.
    explicit HttpIndexReader(std::string name);

    // Reads the next piece. kInvalidArgument: a line of another form or above 64 KiB, a key that
    // is_http_key() refuses, or the index's own line twice (or a growing index would never end);
    // the message has the line's number. Errors of `take` get the number, too.
    Status read(std::string_view piece, const Take& take);

    // Ends the index, whose last line may lack the line feed. kInvalidArgument: as read(), or there
    // was no line at all.
    Status finish(const Take& take);

private:
    Status take_line(std::string_view line, const Take& take);
    Status take_entry(std::string_view line, const Take& take);

    const std::string name_;
    std::string rest_;  // incomplete last line
    std::uint64_t lines_ = 0;
    bool has_own_line_ = false;
};

}  // namespace stoker::domain
