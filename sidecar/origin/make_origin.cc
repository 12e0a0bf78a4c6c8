#include "sidecar/origin/make_origin.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "common/domain/http_uri.h"
#include "sidecar/origin/block_origin.h"
#include "sidecar/origin/chunk_origin.h"
#include "sidecar/origin/credentials_file.h"
#include "sidecar/origin/directory_origin.h"
#include "sidecar/origin/http_origin.h"
#include "sidecar/origin/memory_limit.h"
#include "sidecar/origin/s3_origin.h"
#include "sidecar/origin/shard_origin.h"
#include "sidecar/origin/web_identity.h"

namespace stoker::sidecar {

namespace {

Result<std::unique_ptr<CredentialSource>> exchanged(
    WebIdentity identity, const OriginOptions& options, const Clock& clock) {
    STOKER_TRY(
        auto client, http::make_curl_client(client_options(options, identity.endpoint), clock));
    return credentials_from_web_identity(std::move(identity), std::move(client), clock);
}

OriginOptions with_environment(OriginOptions options, const Environment& environment) {
    options.proxies = http::proxies_from_environment(environment);
    for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
        const char* value = environment(name);
        if (options.ca_file.empty() && value != nullptr) {
            options.ca_file = value;
        }
    }
    return options;
}

Result<std::unique_ptr<Origin>> make_object_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed) {
    constexpr std::string_view kFile = "file://";
    if (uri.starts_with("file:///")) {
        return make_directory_origin(std::string{uri.substr(kFile.size())}, options, clock, seed);
    }
    if (domain::is_http_uri(uri)) {
        return make_http_origin(uri, with_environment(options, environment), clock, seed);
    }
    if (!uri.starts_with("s3://")) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "'{}' is neither s3://bucket/folder nor https://host/folder nor file:///directory",
                uri));
    }
    STOKER_TRY(S3Access s3, resolve_s3(uri, options, environment, clock));
    return make_s3_origin(
        std::move(s3.location), s3.options, std::move(s3.credentials), clock, seed);
}

}  // namespace

OriginOptions options_of(const SourceConfig& source) {
    OriginOptions options;
    options.index = source.index;
    options.endpoint = source.endpoint;
    options.region = source.region;
    options.path_style = source.path_style;
    options.credentials_directory = source.credentials_directory;
    options.credentials_file = source.credentials_file;
    options.ca_file = source.ca_file;
    options.format = source.format;
    options.block_bytes = source.block_bytes;
    options.records = source.records;
    return options;
}

OriginCapacity capacity_for(std::uint32_t fetches, const OriginOptions& options) {
    return {fetches, static_cast<std::uint32_t>(std::ceil(fetches * options.requests_per_fetch))};
}

Error too_large(std::uint64_t size_bytes, const OriginOptions& options) {
    return {
        ErrorCode::kResourceExhausted,
        fmt::format(
            "{} is more than the {} that a fetch may hold: read it at the origin",
            to_string(Bytes{size_bytes}),
            to_string(options.object_bytes_max))};
}

Error fetch_error(
    const Origin& origin, const OriginFetch& fetch, const Error& error, std::uint32_t attempts) {
    const std::string tries = attempts > 1 ? fmt::format(" (after {} attempts)", attempts) : "";
    return {
        error.code,
        fmt::format("'{}' of {}: {}{}", fetch.key, origin.describe(), error.message, tries)};
}

http::ClientOptions client_options(const OriginOptions& options, std::string_view url) {
    http::ClientOptions client;
    client.ca_file = url.starts_with("https:") ? options.ca_file : "";
    client.proxies = options.proxies;
    return client;
}

Result<std::unique_ptr<CredentialSource>> choose_credentials(
    const OriginOptions& options, const Environment& environment, const Clock& clock) {
    if (!options.credentials_directory.empty() && !options.credentials_file.empty()) {
        return fail(
            ErrorCode::kInvalidArgument, "credentials come from a directory or a file, not both");
    }
    if (!options.credentials_directory.empty()) {
        return credentials_from_directory(options.credentials_directory, clock);
    }
    if (!options.credentials_file.empty()) {
        return credentials_from_file(options.credentials_file, clock);
    }
    STOKER_TRY(auto source, credentials_from_environment(environment));
    if (source != nullptr) {
        return source;
    }
    if (auto identity = web_identity_from_environment(environment, options.region)) {
        return exchanged(*std::move(identity), options, clock);
    }
    return no_credentials();
}

Result<S3Access> resolve_s3(
    std::string_view uri,
    OriginOptions options,
    const Environment& environment,
    const Clock& clock) {
    options = with_environment(std::move(options), environment);
    STOKER_TRY(
        S3Location location,
        parse_s3_location(uri, options.endpoint, options.region, options.path_style));
    STOKER_TRY(auto credentials, choose_credentials(options, environment, clock));
    return S3Access{std::move(location), std::move(options), std::move(credentials)};
}

Result<std::unique_ptr<Origin>> make_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed) {
    STOKER_TRY(auto origin, make_object_origin(uri, options, environment, clock, seed));
    if (options.format == domain::SampleFormat::kObjects) {
        return origin;
    }
    if (options.format == domain::SampleFormat::kBlocks) {
        return make_block_origin(std::move(origin), options.block_bytes);
    }
    ChunkReads::Limits limits{.reads_max = origin->capacity().requests};
    limits.read_bytes_max = std::min(limits.read_bytes_max, options.object_bytes_max.count());
    if (domain::has_shards(options.format)) {
        return make_shard_origin(
            std::move(origin),
            {options.format, options.records},
            options.retry,
            seed,
            limits,
            memory_limit());
    }
    return make_chunk_origin(std::move(origin), limits);
}

}  // namespace stoker::sidecar
