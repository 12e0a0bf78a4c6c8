#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "sidecar/origin/fetch_scheduler.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/s3_answer.h"

// One object being fetched, and one request for it. Private to sidecar/origin.
namespace stoker::sidecar {

// Owned by the origin's thread, except that the HTTP client's thread writes into `payload`, each
// part into its own range; the origin's thread reads it only after the last part has ended.
struct ObjectFetch {
    FetchId id{};
    OriginFetch request{};
    std::function<void(Result<OriginBytes>)> done{};
    std::vector<std::byte> payload{};
    std::uint32_t parts_left = 0;
    std::uint32_t requests = 0;
    std::optional<Duration> first_byte{};
    bool over = false;  // `done` has been called; results of running requests are ignored
};

// The attempts at one request. Between start and on_ended the HTTP client's thread owns the members
// below `attempt`.
class PartFetch : public std::enable_shared_from_this<PartFetch> {
public:
    PartFetch(std::shared_ptr<ObjectFetch> object, std::optional<ByteRange> range);

    [[nodiscard]] ObjectFetch& object() const { return *object_; }

    [[nodiscard]] std::optional<ByteRange> range() const { return range_; }

    [[nodiscard]] std::uint32_t attempt() const { return attempt_; }

    // Discards the last attempt and returns the sink for the next. Calls `on_ended` on the HTTP
    // client's thread when the attempt ends; `clock` must outlive it.
    http::HttpSink begin_attempt(
        const Clock& clock, std::function<void(std::shared_ptr<PartFetch>)> on_ended);

    // Call after on_ended. nullopt: the payload has all bytes of the right version.
    [[nodiscard]] std::optional<S3Failure> failure(WallTime now) const;

    [[nodiscard]] std::optional<Duration> first_byte() const { return first_byte_; }

    // From the start of the last attempt, before a new connection is opened, to its end.
    [[nodiscard]] Duration duration() const { return duration_; }

    [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

    // For metrics: the status, or the name of the transport's error.
    [[nodiscard]] std::string outcome() const;

    http::CallId call{};  // of the running attempt

private:
    void take_head(int status, const http::Headers& headers, Duration first_byte);
    bool take_body(std::span<const std::byte> data);

    [[nodiscard]] bool is_good_status() const { return status_ >= 200 && status_ < 300; }

    [[nodiscard]] std::span<std::byte> target() const;

    const std::shared_ptr<ObjectFetch> object_;
    const std::optional<ByteRange> range_;
    std::uint32_t attempt_ = 0;

    int status_ = 0;
    http::Headers headers_;
    std::string error_body_;
    std::optional<S3Failure> refused_;  // our refusal of the head or the body
    std::optional<Duration> first_byte_;
    Duration duration_{};
    std::uint64_t received_bytes_ = 0;
    Status transport_;
};

}  // namespace stoker::sidecar
