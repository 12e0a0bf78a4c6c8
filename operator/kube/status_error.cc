#include "operator/kube/status_error.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr std::size_t kForeignBodyMax = 200;

std::vector<StatusCause> read_causes(const web::json::value& status) {
    std::vector<StatusCause> causes;
    const auto* list = find_at(status, {"details", "causes"});
    if (list == nullptr || !list->is_array()) {
        return causes;
    }
    for (const auto& cause : list->as_array()) {
        causes.push_back(
            {string_at(cause, {"reason"}),
             string_at(cause, {"message"}),
             string_at(cause, {"field"})});
    }
    return causes;
}

std::optional<Duration> parse_seconds(std::string_view text) {
    std::int64_t seconds = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seconds);
    if (text.empty() || error != std::errc() || rest != end || seconds < 0) {
        return std::nullopt;
    }
    constexpr std::int64_t kSaneMax = 24LL * 3600;
    return std::chrono::seconds{std::min(seconds, kSaneMax)};
}

// One short line: a proxy's body may be a page of HTML.
std::string foreign_message(int http_status, std::string_view body) {
    std::string line(body.substr(0, kForeignBodyMax));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return line.empty() ? fmt::format("HTTP status {}", http_status)
                        : fmt::format("HTTP status {}: {}", http_status, line);
}

ErrorCode code_of(const ApiFailure& failure) {
    switch (failure.http_status) {
        case 400:
        case 405:
        case 406:
        case 413:
        case 415:
        case 422:
            return ErrorCode::kInvalidArgument;
        case 401:
            return ErrorCode::kForbidden;
        case 403:
            return failure.has_cause("NamespaceTerminating") ? ErrorCode::kGone
                                                             : ErrorCode::kForbidden;
        case 404:
            return ErrorCode::kNotFound;
        case 408:
        case 504:
            return ErrorCode::kDeadlineExceeded;
        case 409:
            return failure.reason == "AlreadyExists" ? ErrorCode::kAlreadyExists
                                                     : ErrorCode::kConflict;
        case 410:
            return ErrorCode::kGone;
        case 429:
            return ErrorCode::kUnavailable;
        case 507:
            return ErrorCode::kResourceExhausted;
        default:
            return failure.http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
    }
}

}  // namespace

Error ApiFailure::error() const {
    std::string text = message;
    if (!reason.empty() && message.find(reason) == std::string::npos) {
        text = fmt::format("{} ({})", message, reason);
    }
    return Error{code_of(*this), std::move(text)};
}

bool ApiFailure::has_cause(std::string_view cause) const {
    return std::any_of(causes.begin(), causes.end(), [cause](const StatusCause& candidate) {
        return candidate.reason == cause;
    });
}

bool ApiFailure::is_expired() const {
    return http_status == 410 || reason == "Expired" || reason == "Gone";
}

bool ApiFailure::is_resource_version_too_large() const {
    if (has_cause("ResourceVersionTooLarge")) {
        return true;
    }
    // Servers before 1.18 report this only in the message.
    return http_status == 504 && message.find("Too large resource version") != std::string::npos;
}

bool ApiFailure::is_too_many_requests() const {
    return http_status == 429 || reason == "TooManyRequests";
}

bool ApiFailure::is_internal() const {
    return http_status == 500 || reason == "InternalError";
}

ApiFailure read_status(const web::json::value& status) {
    ApiFailure failure;
    failure.http_status = static_cast<int>(integer_at(status, {"code"}).value_or(0));
    failure.reason = string_at(status, {"reason"});
    failure.message = string_at(status, {"message"});
    failure.causes = read_causes(status);
    const auto seconds = integer_at(status, {"details", "retryAfterSeconds"}).value_or(0);
    if (seconds > 0) {
        failure.retry_after = parse_seconds(fmt::format("{}", seconds));
    }
    if (failure.message.empty()) {
        failure.message = foreign_message(failure.http_status, {});
    }
    return failure;
}

ApiFailure read_failure(int http_status, std::string_view body, std::string_view retry_after) {
    ApiFailure failure;
    const auto parsed = Json::parse(body);
    if (parsed && string_at(parsed->value(), {"kind"}) == "Status") {
        failure = read_status(parsed->value());
    } else {
        failure.message = foreign_message(http_status, body);
    }
    failure.http_status = http_status;
    if (const auto header = parse_seconds(retry_after)) {
        failure.retry_after = header;
    }
    return failure;
}

}  // namespace stoker::control
