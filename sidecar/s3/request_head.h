#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/http/headers.h"

// The head of an HTTP/1.1 request. Strict: a head that two parsers could read differently is
// refused (bare CR or LF, folded lines, blanks before a colon, two different lengths, a length
// beside a transfer coding). Pure.
namespace stoker::s3 {

// Bytes of the request line and all header lines, the empty line included.
inline constexpr std::size_t kHeadBytesMax = 16 << 10;
inline constexpr std::size_t kHeadersMax = 100;

struct RequestHead {
    std::string method;  // upper-case letters
    std::string path;    // as sent: percent-encoded, begins with '/'
    std::string query;   // as sent, without '?'
    http::Headers headers;
    bool keep_alive = true;   // HTTP/1.1 unless "Connection: close"
    bool is_chunked = false;  // the body has a chunked transfer coding, and no content_length
    std::optional<std::uint64_t> content_length;
    bool expects_continue = false;

    [[nodiscard]] bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }

    // The value of the first header of this name, or "".
    [[nodiscard]] std::string_view header(std::string_view name) const;
};

enum class HeadState : std::uint8_t { kIncomplete, kComplete, kTooLarge, kMalformed };

struct ParsedHead {
    HeadState state = HeadState::kIncomplete;
    RequestHead head;       // of a complete head
    std::size_t bytes = 0;  // its length in bytes; the body or the next request follows
};

// Reads the head at the beginning of `input`. Empty lines before it are skipped (RFC 9112, 2.2).
ParsedHead parse_head(std::string_view input);

}  // namespace stoker::s3
