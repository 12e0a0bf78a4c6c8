#include "sidecar/origin/credentials_file.h"

#include <system_error>

#include <cpprest/json.h>
#include <fmt/core.h>

#include "sidecar/origin/sts_answer.h"

namespace stoker::sidecar {

namespace {

// The string member `name`; empty: there is none.
std::string text_of(const web::json::value& object, const char* name) {
    return object.has_string_field(name) ? object.at(name).as_string() : "";
}

Result<TemporaryCredentials> parse(const std::string& text) {
    std::error_code broken;
    const auto json = web::json::value::parse(text, broken);
    if (broken || !json.is_object()) {
        return fail(ErrorCode::kForbidden, "is not a JSON object");
    }
    TemporaryCredentials found;
    found.credentials = {
        text_of(json, "AccessKeyId"),
        text_of(json, "SecretAccessKey"),
        text_of(json, "SessionToken")};
    if (found.credentials.access_key_id.empty() || found.credentials.secret_access_key.empty()) {
        return fail(ErrorCode::kForbidden, "has no AccessKeyId with a SecretAccessKey");
    }
    if (const std::string expires = text_of(json, "Expiration"); !expires.empty()) {
        found.expires = parse_iso_time(expires);
        if (!found.expires) {
            return fail(ErrorCode::kForbidden, "has an Expiration that is not a time in UTC");
        }
    }
    return found;
}

Result<TemporaryCredentials> read_file(const std::string& path) {
    STOKER_TRY(const std::string text, read_small_file(path));
    auto found = parse(text);
    if (!found) {
        return fail(found.error().code, fmt::format("{} {}", path, found.error().message));
    }
    return found;
}

}  // namespace

std::unique_ptr<CredentialSource> credentials_from_file(
    const std::string& path, const Clock& clock) {
    return credentials_from_files(
        {path}, [path] { return read_file(path); }, clock);
}

}  // namespace stoker::sidecar
