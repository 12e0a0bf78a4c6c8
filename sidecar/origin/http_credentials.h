#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http/headers.h"
#include "sidecar/origin/credentials.h"

// Credentials for an HTTP server, from a mounted Secret: its file "token" (Bearer), else "username" and
// "password" (Basic, the keys of a Secret of type kubernetes.io/basic-auth).
namespace stoker::sidecar {

// In Credentials, the token is session_token, and user name and password are the key and its secret.
// As credentials_from_files(); kForbidden also for a token or user name that a header cannot carry.
std::unique_ptr<CredentialSource> http_credentials(
    const std::string& directory, const Clock& clock);

// The Authorization header for a request; nullopt: none is needed.
std::optional<http::Header> authorization(const std::optional<Credentials>& credentials);

}  // namespace stoker::sidecar
