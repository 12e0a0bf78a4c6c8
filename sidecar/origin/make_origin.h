#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/block_format.h"
#include "common/domain/sample_format.h"
#include "common/http/http_client.h"
#include "common/http/proxy.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/origin_metrics.h"
#include "sidecar/origin/retry.h"
#include "sidecar/origin/s3_location.h"

namespace stoker::sidecar {

struct OriginOptions {
    std::string index{};  // HTTP only: name of the list of objects; empty: "index.txt"
    // S3 only.
    std::string endpoint{};  // "http://versity.ml.svc:7070"; empty: Amazon's of the region
    std::string region = "us-east-1";
    std::optional<bool> path_style{};  // see parse_s3_location()
    std::string credentials_file{};    // JSON that another program renews
    // S3 and HTTP.
    std::string
        credentials_directory{};  // a mounted Secret; empty: S3 has the environment's, HTTP none
    std::string ca_file{};  // CA certificates to trust for https; empty: those of $AWS_CA_BUNDLE,
                            // else those of $SSL_CERT_FILE, else the system's
    Duration connect_timeout = std::chrono::seconds{5};
    Duration stall_timeout = std::chrono::seconds{20};  // longest wait for the next or first byte
    RetryPolicy retry{};

    // Larger objects fail with kResourceExhausted and are read by the client, because a fetch holds
    // its whole object in memory. Peak memory of all fetches: see FetchScheduler.
    Bytes object_bytes_max = gib(1);
    Bytes bytes_in_flight_max = mib(256);
    // Limit of OriginCapacity::fetches. S3 and HTTP origins look for the best number below it; a
    // directory has that many threads, at most 16.
    std::uint32_t max_in_flight = 512;
    double requests_per_fetch = 1;  // above 1: other parties' requests are added (see capacity())

    http::ProxySettings proxies{};  // make_origin() sets them from the environment

    domain::SampleFormat format = domain::SampleFormat::kObjects;
    Bytes block_bytes = domain::kBlockBytesDefault;  // of format kBlocks
    domain::RecordRows records{};                    // of format kRecords

    OriginMetrics* metrics = nullptr;
};

// Options with the dataset's settings; all others have their defaults.
OriginOptions options_of(const SourceConfig& source);

// The capacity if the own party may have `fetches` in flight.
OriginCapacity capacity_for(std::uint32_t fetches, const OriginOptions& options);

// The error of an object larger than a fetch may hold.
Error too_large(std::uint64_t size_bytes, const OriginOptions& options);

// An error of one fetch; names the object, the origin and the number of attempts.
Error fetch_error(
    const Origin& origin, const OriginFetch& fetch, const Error& error, std::uint32_t attempts);

// Options for an HTTP client: certificates and proxy. `url` begins with the request's scheme.
http::ClientOptions client_options(const OriginOptions& options, std::string_view url);

// Chooses an S3 origin's credentials, the first of: options.credentials_directory;
// options.credentials_file; AWS_ACCESS_KEY_ID; AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE; none
// (anonymous). Reads `environment` once; `clock` must outlive the source. kInvalidArgument: both
// files set, half a pair of variables, or an unreadable CA file.
Result<std::unique_ptr<CredentialSource>> choose_credentials(
    const OriginOptions& options, const Environment& environment, const Clock& clock);

// The location, options and credentials of an S3 client.
struct S3Access {
    S3Location location;
    OriginOptions options;  // with the environment's proxies and, if they name none, its CA file
    std::unique_ptr<CredentialSource> credentials;
};

// Contacts no server. kInvalidArgument: an invalid `uri`; or as choose_credentials().
Result<S3Access> resolve_s3(
    std::string_view uri,
    OriginOptions options,
    const Environment& environment,
    const Clock& clock);

// Makes the origin of "s3://bucket/folder", "https://host/folder" or "file:///directory". Reads `environment` once, for S3
// credentials, proxies (http/proxy.h) and certificates; `clock` and options.metrics must outlive
// the origin; `seed` seeds its retry jitter. kInvalidArgument: invalid `uri` or option. kNotFound,
// kForbidden: the directory. Does not contact a server: the first list() or fetch() reports its
// errors.
Result<std::unique_ptr<Origin>> make_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar
