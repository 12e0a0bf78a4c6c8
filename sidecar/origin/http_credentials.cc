#include "sidecar/origin/http_credentials.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <openssl/evp.h>

namespace stoker::sidecar {

namespace {

std::string base64(const std::string& text) {
    std::string encoded(4 * ((text.size() + 2) / 3) + 1, '\0');  // with a NUL at its end
    EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(encoded.data()),
        reinterpret_cast<const unsigned char*>(text.data()),
        static_cast<int>(text.size()));
    encoded.pop_back();
    return encoded;
}

bool has_control(const std::string& text) {
    return std::ranges::any_of(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

Result<TemporaryCredentials> read_secret(const std::string& directory) {
    const auto file = [&directory](const char* name) {
        return read_small_file(fmt::format("{}/{}", directory, name));
    };
    Credentials credentials;
    if (auto token = file("token")) {
        credentials.session_token = *std::move(token);
    } else {
        STOKER_TRY(credentials.access_key_id, file("username"));
        STOKER_TRY(credentials.secret_access_key, file("password"));
    }
    // RFC 7617: the first colon ends the user name.
    if (has_control(credentials.session_token) || has_control(credentials.access_key_id) ||
        has_control(credentials.secret_access_key) ||
        credentials.access_key_id.find(':') != std::string::npos) {
        return fail(
            ErrorCode::kForbidden,
            fmt::format(
                "{}: token, username and password must not have control characters, and username "
                "no colon",
                directory));
    }
    return TemporaryCredentials{std::move(credentials)};
}

}  // namespace

std::unique_ptr<CredentialSource> http_credentials(
    const std::string& directory, const Clock& clock) {
    return credentials_from_files(
        {directory + "/token", directory + "/username"},
        [directory] { return read_secret(directory); },
        clock);
}

std::optional<http::Header> authorization(const std::optional<Credentials>& credentials) {
    if (!credentials) {
        return std::nullopt;
    }
    if (!credentials->session_token.empty()) {
        return http::Header{"Authorization", "Bearer " + credentials->session_token};
    }
    return http::Header{
        "Authorization",
        "Basic " + base64(credentials->access_key_id + ":" + credentials->secret_access_key)};
}

}  // namespace stoker::sidecar
