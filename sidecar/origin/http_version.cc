#include "sidecar/origin/http_version.h"

#include <charconv>
#include <chrono>

#include <fmt/core.h>

#include "common/http/http_date.h"

namespace stoker::sidecar {

namespace {

using Seconds = std::chrono::seconds;

constexpr char kTimeMark = '@';

std::optional<Seconds> time_of(const http::Headers& headers, std::string_view name) {
    const std::string* text = http::find_header(headers, name);
    const auto time = text == nullptr ? std::nullopt : http::parse_http_date(*text);
    return time ? std::optional{std::chrono::floor<Seconds>(time->time_since_epoch())}
                : std::nullopt;
}

bool is_time(std::string_view version) {
    return version.starts_with(kTimeMark);
}

Seconds time_in(std::string_view version) {
    std::int64_t seconds = 0;
    std::from_chars(version.data() + 1, version.data() + version.size(), seconds);
    return Seconds{seconds};
}

OriginFailure changed(std::string_view now, std::string_view listed) {
    return conflict(
        fmt::format("changed at the origin: version {} now, {} when it was listed", now, listed));
}

// A file that is written twice in one second has one Last-Modified; and nginx makes its ETags from that
// and the size. nullopt also without the two headers.
std::optional<OriginFailure> check_settled(const http::Headers& headers) {
    const auto modified = time_of(headers, "Last-Modified");
    const auto now = time_of(headers, "Date");
    if (modified && now && *now <= *modified + Seconds{1}) {
        return OriginFailure{
            {ErrorCode::kUnavailable,
             "by the server's clock the object was written just now or will be: another change "
             "might not be noticed"},
            true};
    }
    return std::nullopt;
}

std::optional<OriginFailure> check_time(std::string_view version, const http::Headers& headers) {
    const auto modified = time_of(headers, "Last-Modified");
    if (!modified || *modified != time_in(version)) {
        return changed(
            modified ? fmt::format("{}{}", kTimeMark, modified->count()) : "missing", version);
    }
    if (!time_of(headers, "Date")) {
        return refuse(
            "the server sends neither an ETag nor a Date, so a change could not be noticed");
    }
    return check_settled(headers);
}

}  // namespace

std::optional<std::string> http_version_of(const http::Headers& headers) {
    if (const std::string* etag = http::find_header(headers, "ETag");
        etag != nullptr && !bare_etag(*etag).empty() && etag->ends_with('"')) {
        return *etag;
    }
    const auto modified = time_of(headers, "Last-Modified");
    return modified && modified->count() >= 0
               ? std::optional{fmt::format("{}{}", kTimeMark, modified->count())}
               : std::nullopt;
}

std::optional<http::Header> http_condition(std::string_view version) {
    if (is_time(version)) {
        return http::Header{
            "If-Unmodified-Since", http::format_http_date(WallTime{time_in(version)})};
    }
    return version.starts_with("W/")
               ? std::nullopt
               : std::optional{http::Header{"If-Match", std::string{version}}};
}

std::optional<OriginFailure> check_http_version(
    std::string_view version, const http::Headers& headers) {
    if (is_time(version)) {
        return check_time(version, headers);
    }
    const std::string* etag = http::find_header(headers, "ETag");
    if (etag == nullptr || bare_etag(*etag) != bare_etag(version)) {
        return changed(etag == nullptr ? "missing" : *etag, version);
    }
    return check_settled(headers);
}

}  // namespace stoker::sidecar
