#include "sidecar/origin/sts_answer.h"

#include <algorithm>
#include <ctime>
#include <string>

#include <fmt/core.h>

#include "sidecar/origin/s3_answer.h"
#include "sidecar/origin/walk_xml.h"

namespace stoker::sidecar {

namespace {

constexpr std::string_view kCredentials =
    "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
constexpr std::time_t kLastSecond = 7258118400;  // 2200: nanoseconds in 64 bits end in 2262

}  // namespace

std::optional<WallTime> parse_iso_time(std::string_view text) {
    std::tm date{};
    const std::string owned{text};
    const char* rest = ::strptime(owned.c_str(), "%Y-%m-%dT%H:%M:%S", &date);
    if (rest == nullptr) {
        return std::nullopt;
    }
    std::string_view zone{rest};
    if (zone.starts_with('.')) {
        zone.remove_prefix(1);
        zone.remove_prefix(std::min(zone.find_first_not_of("0123456789"), zone.size()));
    }
    if (zone != "Z" && zone != "+00:00") {
        return std::nullopt;
    }
    return WallTime{std::chrono::seconds{std::clamp<std::time_t>(::timegm(&date), 0, kLastSecond)}};
}

Result<TemporaryCredentials> parse_sts_credentials(std::string_view xml) {
    const XmlLeaves leaves = read_xml_leaves(xml);
    const auto text = [&leaves](std::string_view name) {
        return leaves.text(fmt::format("{}{}", kCredentials, name));
    };
    const TemporaryCredentials found{
        {text("AccessKeyId"), text("SecretAccessKey"), text("SessionToken")},
        parse_iso_time(text("Expiration"))};
    const Credentials& keys = found.credentials;
    if (!leaves.is_whole || keys.access_key_id.empty() || keys.secret_access_key.empty() ||
        keys.session_token.empty() || !found.expires) {
        return fail(ErrorCode::kUnavailable, "its answer has no credentials with an expiration");
    }
    return found;
}

Error sts_refusal(int status, std::string_view xml) {
    Error error = failure_of_status(status, {}, xml, {}).error;
    error.code = error.code == ErrorCode::kUnavailable ? error.code : ErrorCode::kForbidden;
    return error;
}

}  // namespace stoker::sidecar
