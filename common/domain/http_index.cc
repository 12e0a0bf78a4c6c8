#include "common/domain/http_index.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "common/domain/manifest_rules.h"

namespace stoker::domain {

namespace {

constexpr std::size_t kLineBytesMax = 64 * 1024;

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

// Whether the text is an ETag: visible characters between two '"' (RFC 9110, 8.8.3).
bool is_quoted_tag(std::string_view text) {
    return text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
           std::all_of(text.begin() + 1, text.end() - 1, [](char c) {
               return static_cast<unsigned char>(c) > 0x20 && c != 0x7F && c != '"';
           });
}

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return is_digits(text) && read.ec == std::errc{} ? std::optional{value} : std::nullopt;
}

// Removes the text up to the next tab from `line` and returns it; nullopt: there is no tab.
std::optional<std::string_view> take_column(std::string_view& line) {
    const auto tab = line.find('\t');
    if (tab == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view column = line.substr(0, tab);
    line.remove_prefix(tab + 1);
    return column;
}

Result<HttpIndexEntry> parse_line(std::string_view line) {
    HttpIndexEntry entry;
    if (const auto size = take_column(line)) {
        entry.size_bytes = number_of(*size);
        if (!entry.size_bytes) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' before the first tab is not a size", size->substr(0, 40)));
        }
        if (const auto key = take_column(line)) {
            auto version = http_version_of_column(line);
            if (!version) {
                return fail(
                    ErrorCode::kInvalidArgument,
                    fmt::format(
                        "'{}' after the second tab is neither an ETag in quotes nor a Unix time",
                        line.substr(0, 40)));
            }
            entry.version = *std::move(version);
            line = *key;
        }
    }
    entry.key = line;
    if (!is_http_key(entry.key)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "'{}' is not a key: it must be relative, without control characters and without "
                "empty parts, . or ..",
                entry.key.substr(0, 100)));
    }
    return entry;
}

}  // namespace

bool is_http_key(std::string_view key) {
    return std::ranges::none_of(key, is_control) && is_plain_key(key);
}

std::optional<std::string> http_version_of_column(std::string_view column) {
    const std::string_view tag = column.starts_with("W/") ? column.substr(2) : column;
    if (is_quoted_tag(tag)) {
        return column.size() <= kHttpVersionBytesMax ? std::optional{std::string{column}}
                                                     : std::nullopt;
    }
    const auto point = column.find('.');
    const auto seconds = number_of(column.substr(0, point));
    const bool is_whole = point == std::string_view::npos || is_digits(column.substr(point + 1));
    return seconds && *seconds <= kHttpSecondsMax && is_whole
               ? std::optional{fmt::format("@{}", *seconds)}
               : std::nullopt;
}

HttpIndexReader::HttpIndexReader(std::string name)
    : name_(std::move(name)) {}

Status HttpIndexReader::read(std::string_view piece, const Take& take) {
    for (auto end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
        if (rest_.empty()) {
            STOKER_TRY_VOID(take_line(piece.substr(0, end), take));
        } else {
            rest_ += piece.substr(0, end);
            STOKER_TRY_VOID(take_line(rest_, take));
            rest_.clear();
        }
        piece.remove_prefix(end + 1);
    }
    rest_ += piece;
    // Refuses an endless line before all of it is read.
    return rest_.size() > kLineBytesMax ? take_line(rest_, take) : Status{};
}

Status HttpIndexReader::finish(const Take& take) {
    if (!rest_.empty()) {
        STOKER_TRY_VOID(take_line(rest_, take));
        rest_.clear();
    }
    return lines_ > 0 ? Status{} : fail(ErrorCode::kInvalidArgument, name_ + " is empty");
}

Status HttpIndexReader::take_line(std::string_view line, const Take& take) {
    ++lines_;
    const Status taken = take_entry(line, take);
    return taken ? Status{}
                 : fail(taken.error().prefixed(fmt::format("{}, line {}", name_, lines_)));
}

Status HttpIndexReader::take_entry(std::string_view line, const Take& take) {
    if (line.size() > kLineBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("longer than {} bytes", kLineBytesMax));
    }
    STOKER_TRY(const HttpIndexEntry entry, parse_line(line));
    if (entry.key != name_) {
        return take(entry);
    }
    // The index may list itself once: a shell creates the index's file before `find` runs.
    return std::exchange(has_own_line_, true)
               ? fail(ErrorCode::kInvalidArgument, "names the index itself more than once")
               : Status{};
}

}  // namespace stoker::domain
