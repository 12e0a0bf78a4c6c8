#include "sidecar/s3/object_answer.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "common/http/http_date.h"

namespace stoker::s3 {

namespace {

// Whether the list of an If-Match or If-None-Match header contains the ETag. Clients also send
// ETags without quotes.
bool names_etag(std::string_view list, std::string_view etag) {
    if (list == "*") {
        return true;
    }
    while (!list.empty()) {
        std::string_view item = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), item.size() + 1));
        item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
        while (item.ends_with(' ')) {
            item.remove_suffix(1);
        }
        if (item.starts_with("W/")) {
            item.remove_prefix(2);
        }
        if (item.size() >= 2 && item.starts_with('"') && item.ends_with('"')) {
            item = item.substr(1, item.size() - 2);
        }
        if (item == etag) {
            return true;
        }
    }
    return false;
}

// The status that the request's conditions demand; 0: they demand none.
int status_of_conditions(const RequestHead& head, const ObjectFacts& facts) {
    const std::string_view match = head.header("if-match");
    const std::string_view none_match = head.header("if-none-match");
    const auto unmodified = http::parse_http_date(head.header("if-unmodified-since"));
    const auto modified = http::parse_http_date(head.header("if-modified-since"));
    if (!match.empty() ? !names_etag(match, facts.etag)
                       : unmodified && facts.modified > *unmodified) {
        return 412;
    }
    if (!none_match.empty() ? names_etag(none_match, facts.etag)
                            : modified && facts.modified <= *modified) {
        return 304;
    }
    return 0;
}

// Parses digits; nullopt: other characters. A number too large for 64 bits becomes the largest one.
std::optional<std::uint64_t> position(std::string_view digits) {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || at != end || error == std::errc::invalid_argument) {
        return std::nullopt;
    }
    return error == std::errc::result_out_of_range ? UINT64_MAX : value;
}

// Applies a Range header; ignores a malformed one, as RFC 9110 says.
ObjectAnswer answer_range(std::string_view range, std::uint64_t size) {
    const ObjectAnswer whole{200, 0, size};
    const auto dash = range.find('-');
    if (dash == std::string_view::npos) {
        return whole;
    }
    const std::string_view first_text = range.substr(0, dash);
    const std::string_view last_text = range.substr(dash + 1);
    const auto first = position(first_text);
    const auto last = position(last_text);
    if (first_text.empty()) {
        if (!last) {
            return whole;
        }
        const std::uint64_t length = std::min(*last, size);
        return length == 0 ? ObjectAnswer{416, 0, 0} : ObjectAnswer{206, size - length, length};
    }
    if (!first || (!last && !last_text.empty()) || (last && *last < *first)) {
        return whole;
    }
    if (*first >= size) {
        return {416, 0, 0};
    }
    const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
    return {206, *first, end - *first + 1};
}

}  // namespace

std::optional<ObjectAnswer> answer_object(const RequestHead& head, const ObjectFacts& facts) {
    constexpr std::string_view kUnit = "bytes=";
    const std::string_view range = head.header("range");
    if (range.find(',') != std::string_view::npos || !head.header("if-range").empty()) {
        return std::nullopt;
    }
    if (const int status = status_of_conditions(head, facts); status != 0) {
        return ObjectAnswer{status, 0, 0};
    }
    if (!range.starts_with(kUnit)) {
        return ObjectAnswer{200, 0, facts.size_bytes};
    }
    return answer_range(range.substr(kUnit.size()), facts.size_bytes);
}

std::string content_range(std::uint64_t offset, std::uint64_t length, std::uint64_t object_bytes) {
    return fmt::format("bytes {}-{}/{}", offset, offset + length - 1, object_bytes);
}

// Formats a date. Caches the last one, because all objects of a dataset have the same time.
std::string http_date(std::chrono::sys_seconds time) {
    thread_local std::chrono::sys_seconds last_time{};
    thread_local std::string last;
    if (time != last_time || last.empty()) {
        last_time = time;
        last = http::format_http_date(time);
    }
    return last;
}

}  // namespace stoker::s3
