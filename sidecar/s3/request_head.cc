#include "sidecar/s3/request_head.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace stoker::s3 {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kUsualHeaders = 16;

bool is_token_char(char c) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
}

// Visible characters and bytes above 0x7f; inside a value, HTTP also allows tabs and blanks.
bool is_text_char(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7F;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Parses "METHOD target HTTP/1.x", separated by single blanks.
bool read_request_line(std::string_view line, RequestHead& head) {
    const auto first = line.find(' ');
    const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (second == std::string_view::npos) {
        return false;
    }
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, second - first - 1);
    const std::string_view version = line.substr(second + 1);
    const bool is_method =
        !method.empty() && std::ranges::all_of(method, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!is_method || (version != "HTTP/1.1" && version != "HTTP/1.0") ||
        !target.starts_with('/') || !std::ranges::all_of(target, is_text_char) ||
        target.find('#') != std::string_view::npos) {
        return false;
    }
    const auto mark = target.find('?');
    head.method = method;
    head.path = target.substr(0, mark);
    head.query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
    head.keep_alive = version == "HTTP/1.1";
    return true;
}

bool read_header(std::string_view line, RequestHead& head) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || head.headers.size() >= kHeadersMax) {
        return false;
    }
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    const bool is_value =
        std::ranges::all_of(value, [](char c) { return c == ' ' || c == '\t' || is_text_char(c); });
    if (!std::ranges::all_of(name, is_token_char) || !is_value) {
        return false;
    }
    head.headers.push_back({std::string{name}, std::string{value}});
    return true;
}

bool read_length(std::string_view text, RequestHead& head) {
    std::uint64_t length = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, length);
    if (error != std::errc{} || at != end || head.content_length.value_or(length) != length) {
        return false;
    }
    head.content_length = length;
    return true;
}

// Reads the headers that determine the body's length and whether the connection stays open.
bool read_framing(RequestHead& head) {
    for (const http::Header& header : head.headers) {
        if (http::equal_ignoring_case(header.name, "content-length")) {
            if (!read_length(header.value, head)) {
                return false;
            }
        } else if (http::equal_ignoring_case(header.name, "transfer-encoding")) {
            if (head.is_chunked || !http::equal_ignoring_case(header.value, "chunked")) {
                return false;
            }
            head.is_chunked = true;
        } else if (http::equal_ignoring_case(header.name, "connection")) {
            const bool closes = http::equal_ignoring_case(header.value, "close");
            head.keep_alive = head.keep_alive && !closes;
        } else if (http::equal_ignoring_case(header.name, "expect")) {
            head.expects_continue = http::equal_ignoring_case(header.value, "100-continue");
        }
    }
    return !(head.is_chunked && head.content_length);
}

bool read_lines(std::string_view lines, RequestHead& head) {
    head.headers.reserve(kUsualHeaders);
    bool is_first = true;
    while (!lines.empty()) {
        const auto end = lines.find(kLineEnd);
        const std::string_view line = lines.substr(0, end);
        if (is_first ? !read_request_line(line, head) : !read_header(line, head)) {
            return false;
        }
        is_first = false;
        lines.remove_prefix(std::min(lines.size(), line.size() + kLineEnd.size()));
    }
    return !is_first && read_framing(head);
}

}  // namespace

std::string_view RequestHead::header(std::string_view name) const {
    const std::string* value = http::find_header(headers, name);
    return value == nullptr ? std::string_view{} : *value;
}

ParsedHead parse_head(std::string_view input) {
    ParsedHead parsed;
    std::size_t skipped = 0;
    while (input.substr(skipped).starts_with(kLineEnd) && skipped < kHeadBytesMax) {
        skipped += kLineEnd.size();
    }
    const std::string_view rest = input.substr(skipped, kHeadBytesMax);
    const auto end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        const bool is_full = skipped + rest.size() >= kHeadBytesMax;
        parsed.state = is_full ? HeadState::kTooLarge : HeadState::kIncomplete;
        return parsed;
    }
    parsed.bytes = skipped + end + 2 * kLineEnd.size();
    parsed.state =
        read_lines(rest.substr(0, end), parsed.head) ? HeadState::kComplete : HeadState::kMalformed;
    return parsed;
}

}  // namespace stoker::s3
