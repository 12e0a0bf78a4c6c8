#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"
#include "common/http/http_client.h"
#include "sidecar/origin/s3_request.h"

// Interprets an S3 server's answer: whether it is the object in the manifest, and if not, which
// error it is and whether a retry may succeed. Sends nothing.
namespace stoker::sidecar {

// A failed attempt, for the retry policy and the user.
struct S3Failure {
    Error error{};
    bool may_pass = false;
    std::optional<Duration> retry_after{};

    // The origin is overloaded, or does not answer.
    [[nodiscard]] bool is_push_back() const {
        return may_pass && (error.code == ErrorCode::kUnavailable ||
                            error.code == ErrorCode::kDeadlineExceeded);
    }
};

struct ExpectedBytes {
    std::string etag;
    std::uint64_t size_bytes = 0;      // of the whole object
    std::optional<ByteRange> range{};  // the requested range; nullopt: the whole object
    std::uint64_t payload_offset = 0;  // offset in the object of the payload's first byte

    [[nodiscard]] std::uint64_t length() const { return range ? range->length : size_bytes; }
};

// Checks status, ETag, length and range of a 2xx answer to get_request(), before its body is read.
// nullopt: the expected object. kConflict: another object than listed.
std::optional<S3Failure> check_object_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// The failure of a status that is not 2xx; quotes the error document: "403 AccessDenied: Access
// Denied".
S3Failure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now);

// A call that ended without an answer: `error` is the HTTP client's.
S3Failure failure_of_transport(Error error);

// One answer to get_request(): checks that it is the object in the manifest, and keeps its bytes.
// Used by one thread at a time.
class ObjectAnswer {
public:
    // The request is sent now. The body replaces `payload`; the body of a range is written at the
    // range's offset in `payload`, which must be large enough. Both references must outlive this
    // object.
    ObjectAnswer(ExpectedBytes expected, std::vector<std::byte>& payload, const Clock& clock);

    void take_head(int status, const http::Headers& headers);

    // False: nothing more is wanted.
    bool take_body(std::span<const std::byte> data);

    // Call it when the answer has ended. nullopt: all bytes of the listed version have arrived.
    [[nodiscard]] std::optional<S3Failure> failure(const Status& transport, WallTime now) const;

    // From sending the request, before a new connection is opened, to the head of the answer.
    [[nodiscard]] Duration first_byte() const { return first_byte_; }

    // From sending the request until now.
    [[nodiscard]] Duration duration() const { return clock_.now() - sent_at_; }

    [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

    // stored_crc32c() of a whole object; nullopt for a range.
    [[nodiscard]] std::optional<std::uint32_t> stored_checksum() const;

    // For metrics: the status, or the name of the transport's error.
    [[nodiscard]] std::string outcome(const Status& transport) const;

private:
    [[nodiscard]] bool is_good_status() const { return status_ >= 200 && status_ < 300; }

    const ExpectedBytes expected_;
    std::vector<std::byte>& payload_;
    const Clock& clock_;
    const TimePoint sent_at_;
    int status_ = 0;
    http::Headers headers_;
    std::string error_body_;
    std::optional<S3Failure> refused_;  // our refusal of the head or the body
    Duration first_byte_{};
    std::uint64_t received_bytes_ = 0;
};

// Passes head and body to `answer`; on_done is left to the caller.
http::HttpSink sink_into(std::shared_ptr<ObjectAnswer> answer);

// The object's stored CRC-32C from an x-amz-checksum-crc32c header; nullopt where there is none
// that covers the whole object in one piece.
std::optional<std::uint32_t> stored_crc32c(const http::Headers& headers);

}  // namespace stoker::sidecar
