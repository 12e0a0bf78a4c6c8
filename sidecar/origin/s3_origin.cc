#include "sidecar/origin/s3_origin.h"

#include <utility>

#include "sidecar/origin/remote_origin.h"
#include "sidecar/origin/s3_answer.h"
#include "sidecar/origin/s3_listing.h"
#include "sidecar/origin/s3_request.h"

namespace stoker::sidecar {

namespace {

class S3Dialect final : public ObjectDialect {
public:
    explicit S3Dialect(S3Location location)
        : location_(std::move(location)) {}

    [[nodiscard]] std::string describe() const override { return location_.describe(); }

    [[nodiscard]] http::HttpRequest get_request(
        const std::string& key,
        const ExpectedBytes& expected,
        const std::optional<Credentials>& credentials,
        WallTime now) const override {
        return sidecar::get_request(
            location_, key, expected.etag, expected.range, credentials, now);
    }

    [[nodiscard]] std::optional<OriginFailure> check_head(
        const ExpectedBytes& expected, int status, const http::Headers& headers) const override {
        return check_object_head(expected, status, headers);
    }

    [[nodiscard]] OriginFailure failure_of_status(
        int status,
        const http::Headers& headers,
        std::string_view body,
        WallTime now) const override {
        return sidecar::failure_of_status(status, headers, body, now);
    }

    [[nodiscard]] std::optional<std::uint32_t> stored_checksum(
        const http::Headers& headers) const override {
        return stored_crc32c(headers);
    }

    [[nodiscard]] Result<domain::Listing> list(
        ListingContext context,
        const std::function<void(std::uint64_t)>& progress,
        std::stop_token stop) const override {
        return list_s3(location_, std::move(context), progress, std::move(stop));
    }

private:
    const S3Location location_;
};

}  // namespace

Result<std::unique_ptr<Origin>> make_s3_origin(
    S3Location location,
    const OriginOptions& options,
    std::unique_ptr<CredentialSource> credentials,
    const Clock& clock,
    std::uint64_t seed) {
    const std::string url = location.scheme + ":";
    return make_remote_origin(
        std::make_unique<S3Dialect>(std::move(location)),
        url,
        options,
        std::move(credentials),
        clock,
        seed);
}

}  // namespace stoker::sidecar
