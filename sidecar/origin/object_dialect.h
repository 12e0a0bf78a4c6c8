#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "common/domain/byte_range.h"
#include "common/domain/listing.h"
#include "common/http/headers.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/origin_failure.h"

// The requests and answers in which the S3 API and plain web servers differ; remote_origin.h sends them.
namespace stoker::sidecar {

using domain::ByteRange;

struct ExpectedBytes {
    std::string etag;
    std::uint64_t size_bytes = 0;      // of the whole object
    std::optional<ByteRange> range{};  // the requested range; nullopt: the whole object
    std::uint64_t payload_offset = 0;  // offset in the object of the payload's first byte

    [[nodiscard]] std::uint64_t length() const { return range ? range->length : size_bytes; }
};

// Checks Content-Range (of a 206) and Content-Length of an answer. nullopt: they match the expected
// bytes. kConflict: they do not.
std::optional<OriginFailure> check_extent(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// Dependencies of a listing; all must outlive the call.
struct ListingContext {
    const OriginOptions& options;
    CredentialSource& credentials;
    http::HttpClient& client;
    const Clock& clock;
    Prng random;
};

// Counts a request of a listing, and a retry; does nothing without metrics. Any thread may call.
void count_request(
    const ListingContext& context, std::string_view operation, const std::string& outcome);
void count_retry(const ListingContext& context);

// Sleeps before the next attempt of a listing. nullopt: try again; otherwise the error that ends
// the listing: kCancelled after a stop.
std::optional<Error> wait_for_retry(
    ListingContext& context,
    std::uint32_t attempt,
    const OriginFailure& failure,
    const std::stop_token& stop);

// Sets time-outs: a transfer may take any time, as long as it does not stall.
void set_timeouts(http::HttpRequest& request, const OriginOptions& options);

// Immutable, so any thread may call.
class ObjectDialect {
public:
    virtual ~ObjectDialect() = default;

    // See Origin::describe().
    [[nodiscard]] virtual std::string describe() const = 0;

    // Gets the object `key`, or `range` of it, if it still has this ETag.
    [[nodiscard]] virtual http::HttpRequest get_request(
        const std::string& key,
        const ExpectedBytes& expected,
        const std::optional<Credentials>& credentials,
        WallTime now) const = 0;

    // Checks status, version, length and range of a 2xx answer to get_request(), before its body is
    // read. nullopt: the expected object. kConflict: another object than listed. Status 200 passes
    // for a range only if the whole object may be read instead.
    [[nodiscard]] virtual std::optional<OriginFailure> check_head(
        const ExpectedBytes& expected, int status, const http::Headers& headers) const = 0;

    // The failure of a status that is not 2xx.
    [[nodiscard]] virtual OriginFailure failure_of_status(
        int status, const http::Headers& headers, std::string_view body, WallTime now) const = 0;

    // The CRC-32C that the server stores with the object; nullopt: none.
    [[nodiscard]] virtual std::optional<std::uint32_t> stored_checksum(
        const http::Headers& headers) const = 0;

    // See Origin::list().
    [[nodiscard]] virtual Result<domain::Listing> list(
        ListingContext context,
        const std::function<void(std::uint64_t)>& progress,
        std::stop_token stop) const = 0;
};

}  // namespace stoker::sidecar
