#include "sidecar/origin/http_origin.h"

#include <utility>

#include <fmt/core.h>

#include "sidecar/origin/http_answer.h"
#include "sidecar/origin/http_credentials.h"
#include "sidecar/origin/http_listing.h"
#include "sidecar/origin/http_version.h"
#include "sidecar/origin/remote_origin.h"

namespace stoker::sidecar {

namespace {

class HttpDialect final : public ObjectDialect {
public:
    explicit HttpDialect(HttpLocation location)
        : location_(std::move(location)) {}

    [[nodiscard]] std::string describe() const override { return location_.root; }

    [[nodiscard]] http::HttpRequest get_request(
        const std::string& key,
        const ExpectedBytes& expected,
        const std::optional<Credentials>& credentials,
        WallTime /*now*/) const override {
        http::HttpRequest request = http_request(location_, "GET", key, credentials);
        if (auto condition = http_condition(expected.etag)) {
            request.headers.push_back(*std::move(condition));
        }
        if (const auto& range = expected.range) {
            const std::uint64_t last = range->offset + range->length - 1;
            request.headers.push_back({"Range", fmt::format("bytes={}-{}", range->offset, last)});
        }
        return request;
    }

    [[nodiscard]] std::optional<OriginFailure> check_head(
        const ExpectedBytes& expected, int status, const http::Headers& headers) const override {
        return check_http_head(expected, status, headers);
    }

    [[nodiscard]] OriginFailure failure_of_status(
        int status,
        const http::Headers& headers,
        std::string_view /*body*/,
        WallTime now) const override {
        return failure_of_http_status(status, headers, now);
    }

    [[nodiscard]] std::optional<std::uint32_t> stored_checksum(
        const http::Headers& /*headers*/) const override {
        return std::nullopt;
    }

    [[nodiscard]] Result<domain::Listing> list(
        ListingContext context,
        const std::function<void(std::uint64_t)>& progress,
        std::stop_token stop) const override {
        return list_http(location_, std::move(context), progress, stop);
    }

private:
    const HttpLocation location_;
};

Result<std::unique_ptr<CredentialSource>> choose_http_credentials(
    const HttpLocation& location, const OriginOptions& options, const Clock& clock) {
    if (!options.credentials_file.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("a credentials file is for S3; '{}' needs a directory", location.root));
    }
    if (options.credentials_directory.empty()) {
        return no_credentials();
    }
    if (!location.is_encrypted()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("credentials are sent over https:// only, not to '{}'", location.root));
    }
    return http_credentials(options.credentials_directory, clock);
}

}  // namespace

Result<std::unique_ptr<Origin>> make_http_origin(
    std::string_view uri, const OriginOptions& options, const Clock& clock, std::uint64_t seed) {
    STOKER_TRY(HttpLocation location, parse_http_location(uri, options.index));
    STOKER_TRY(auto credentials, choose_http_credentials(location, options, clock));
    return make_remote_origin(
        std::make_unique<HttpDialect>(std::move(location)),
        uri,
        options,
        std::move(credentials),
        clock,
        seed);
}

}  // namespace stoker::sidecar
