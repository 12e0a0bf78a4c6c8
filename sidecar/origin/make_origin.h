#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/http_client.h"
#include "common/http/proxy.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/origin_metrics.h"
#include "sidecar/origin/retry.h"
#include "sidecar/origin/s3_request.h"

namespace stoker::sidecar {

struct OriginOptions {
    // S3 only.
    std::string endpoint{};  // "http://versity.ml.svc:7070"; empty: Amazon's of the region
    std::string region = "us-east-1";
    std::optional<bool> path_style{};     // as parse_s3_location()'s
    std::string credentials_directory{};  // a mounted Secret; empty: the environment
    std::string credentials_file{};       // JSON that another program keeps fresh
    std::string ca_file{};  // to trust instead of the system's, for https; empty: AWS_CA_BUNDLE,
                            // SSL_CERT_FILE, the system's
    Duration connect_timeout = std::chrono::seconds{5};
    Duration stall_timeout = std::chrono::seconds{20};  // without one byte, the first included
    RetryPolicy retry{};

    // Objects beyond this are refused with kResourceExhausted, because a fetch holds its object in
    // memory as a whole: the client reads them at the origin. Peak memory of all fetches together:
    // see FetchScheduler.
    Bytes object_bytes_max = gib(1);
    Bytes bytes_in_flight_max = mib(256);
    std::uint32_t max_in_flight = 64;  // requests at a time; for directories: threads, at most 16

    http::ProxySettings proxies{};  // make_origin() takes the environment's

    OriginMetrics* metrics = nullptr;
};

// For an object that is more than a fetch may hold.
Error too_large(std::uint64_t size_bytes, const OriginOptions& options);

// An error of one fetch: names the object and the origin, and says how often it was tried.
Error fetch_error(
    const Origin& origin, const OriginFetch& fetch, const Error& error, std::uint32_t attempts);

// Trusts and goes by what the options say; `url` begins with the scheme that it will be asked for.
http::ClientOptions client_options(const OriginOptions& options, std::string_view url);

// The keys of an S3 origin, the first of: options.credentials_directory; options.credentials_file;
// AWS_ACCESS_KEY_ID; AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE; nobody's. `environment` is
// asked once; `clock` must outlive the source. kInvalidArgument: both files, half a pair of
// variables, a CA file that cannot be read.
Result<std::unique_ptr<CredentialSource>> choose_credentials(
    const OriginOptions& options, const Environment& environment, const Clock& clock);

// The origin of "s3://bucket/folder" or "file:///directory". `environment` is asked once, for S3
// credentials, proxies (http/proxy.h) and certificates; `clock` and options.metrics must outlive
// the origin; `seed` seeds its retry jitter. kInvalidArgument: what `uri` or an option
// says cannot be. kNotFound, kForbidden: the directory. A bucket is not asked: the first list() or
// fetch() tells.
Result<std::unique_ptr<Origin>> make_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar
