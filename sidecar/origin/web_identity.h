#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"

namespace stoker::sidecar {

// How to exchange the token of a Kubernetes service account for temporary credentials.
struct WebIdentity {
    std::string role_arn;
    std::string token_file;  // read anew for each exchange: kubelet replaces the token
    std::string session_name = "stoker";
    std::string endpoint;  // URL of the token service
};

// AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE; AWS_ROLE_SESSION_NAME; AWS_ENDPOINT_URL_STS, or
// Amazon's of AWS_REGION, AWS_DEFAULT_REGION or `region` (with AWS_STS_REGIONAL_ENDPOINTS=legacy
// the global one). nullopt: the first two are not both set.
std::optional<WebIdentity> web_identity_from_environment(
    const Environment& environment, std::string_view region);

// Exchanges at the first get(), which waits for it (at most 10 s), and again in the background from
// five minutes before the credentials expire; until they do, a failure changes nothing. After a
// failure it asks again a second later (ten, while they are good). `clock` must outlive the source.
// get(): kUnavailable (the service cannot be reached, or not now), kForbidden (it refuses; no token
// file).
std::unique_ptr<CredentialSource> credentials_from_web_identity(
    WebIdentity identity, std::unique_ptr<http::HttpClient> client, const Clock& clock);

}  // namespace stoker::sidecar
