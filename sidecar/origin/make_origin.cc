#include "sidecar/origin/make_origin.h"

#include <fmt/core.h>

#include "sidecar/origin/directory_origin.h"
#include "sidecar/origin/s3_origin.h"

namespace stoker::sidecar {

Result<std::unique_ptr<Origin>> make_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed) {
    constexpr std::string_view kFile = "file://";
    if (uri.starts_with("file:///")) {
        return make_directory_origin(std::string{uri.substr(kFile.size())}, options, clock, seed);
    }
    if (!uri.starts_with("s3://")) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is neither s3://bucket/folder nor file:///directory", uri));
    }
    STOKER_TRY(
        S3Location location,
        parse_s3_location(uri, options.endpoint, options.region, options.addressing));
    std::unique_ptr<CredentialSource> credentials;
    if (options.credentials_directory.empty()) {
        STOKER_TRY(credentials, credentials_from_environment(environment));
    } else {
        credentials = credentials_from_directory(options.credentials_directory, clock);
    }
    return make_s3_origin(std::move(location), options, std::move(credentials), clock, seed);
}

}  // namespace stoker::sidecar
