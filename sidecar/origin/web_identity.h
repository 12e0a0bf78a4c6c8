#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"

namespace stoker::sidecar {

// Settings for exchanging a Kubernetes service account token for temporary credentials.
struct WebIdentity {
    std::string role_arn;
    std::string token_file;  // read anew for each exchange: kubelet replaces the token
    std::string session_name = "stoker";
    std::string endpoint;  // URL of the token service
};

// Reads AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE; AWS_ROLE_SESSION_NAME; AWS_ENDPOINT_URL_STS,
// or Amazon's endpoint of AWS_REGION, AWS_DEFAULT_REGION or `region` (the global one with
// AWS_STS_REGIONAL_ENDPOINTS=legacy). nullopt: one of the first two is not set.
std::optional<WebIdentity> web_identity_from_environment(
    const Environment& environment, std::string_view region);

// The first try_get() asks for an exchange of the token, which takes at most 10 s. Renewal starts in
// the background five minutes before expiry; until expiry a failed renewal changes nothing. Retries
// a second after a failure; while the credentials are valid, it asks at most every ten seconds.
// `clock` must outlive the source. Errors: kUnavailable (the service is unreachable or busy),
// kForbidden (it refuses, its credentials expire within 30 s, or there is no token file).
std::unique_ptr<CredentialSource> credentials_from_web_identity(
    WebIdentity identity, std::unique_ptr<http::HttpClient> client, const Clock& clock);

}  // namespace stoker::sidecar
