#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"
#include "common/http/http_client.h"
#include "sidecar/origin/object_dialect.h"

namespace stoker::sidecar {

// One answer to ObjectDialect::get_request(): checks that it is the object in the manifest, and keeps
// its bytes. Used by one thread at a time.
class ObjectAnswer {
public:
    // Call the constructor when the request is sent. The body replaces `payload`; the body of a
    // range is written at the range's offset in `payload`, which must be large enough. Both
    // references and `dialect` must outlive this object.
    ObjectAnswer(
        const ObjectDialect& dialect,
        ExpectedBytes expected,
        std::vector<std::byte>& payload,
        const Clock& clock);

    void take_head(int status, const http::Headers& headers);

    // Takes the next piece of the body. False: no more is wanted.
    bool take_body(std::span<const std::byte> data);

    // Call it when the answer has ended. nullopt: all bytes of the listed version have arrived.
    [[nodiscard]] std::optional<OriginFailure> failure(const Status& transport, WallTime now) const;

    // Time from sending the request, before a new connection is opened, to the answer's head.
    [[nodiscard]] Duration first_byte() const { return first_byte_; }

    // Time from sending the request until now.
    [[nodiscard]] Duration duration() const { return clock_.now() - sent_at_; }

    [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

    // The checksum stored with the object; nullopt for a range.
    [[nodiscard]] std::optional<std::uint32_t> stored_checksum() const;

    // For metrics: the status, or the name of the transport's error.
    [[nodiscard]] std::string outcome(const Status& transport) const;

private:
    [[nodiscard]] bool is_good_status() const { return status_ >= 200 && status_ < 300; }

    // Whether the server sends the whole object although a range was requested.
    [[nodiscard]] bool is_uncut() const { return expected_.range && status_ == 200; }

    [[nodiscard]] std::uint64_t body_bytes() const {
        return is_uncut() ? expected_.size_bytes : expected_.length();
    }

    void keep(std::span<const std::byte> data);

    const ObjectDialect& dialect_;
    const ExpectedBytes expected_;
    std::vector<std::byte>& payload_;
    const Clock& clock_;
    const TimePoint sent_at_;
    int status_ = 0;
    http::Headers headers_;
    std::string error_body_;
    std::optional<OriginFailure> refused_;  // why we refused the head or the body
    Duration first_byte_{};
    std::uint64_t received_bytes_ = 0;
};

// A sink that passes head and body to `answer`; the caller sets on_done.
http::HttpSink sink_into(std::shared_ptr<ObjectAnswer> answer);

}  // namespace stoker::sidecar
