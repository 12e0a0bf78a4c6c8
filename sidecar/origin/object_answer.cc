#include "sidecar/origin/object_answer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kErrorBodyBytesMax = 64 * 1024;

}  // namespace

ObjectAnswer::ObjectAnswer(
    const ObjectDialect& dialect,
    ExpectedBytes expected,
    std::vector<std::byte>& payload,
    const Clock& clock)
    : dialect_(dialect),
      expected_(std::move(expected)),
      payload_(payload),
      clock_(clock),
      sent_at_(clock.now()) {
    if (!expected_.range) {
        payload_.clear();
    }
}

void ObjectAnswer::take_head(int status, const http::Headers& headers) {
    status_ = status;
    headers_ = headers;
    first_byte_ = duration();
    if (is_good_status()) {
        refused_ = dialect_.check_head(expected_, status, headers);
    }
}

bool ObjectAnswer::take_body(std::span<const std::byte> data) {
    if (refused_) {
        return false;
    }
    if (!is_good_status()) {
        error_body_.append(reinterpret_cast<const char*>(data.data()), data.size());
        return error_body_.size() <= kErrorBodyBytesMax;
    }
    if (data.size() > body_bytes() - received_bytes_) {
        refused_ = conflict(
            fmt::format("changed at the origin: more than the {} bytes listed", body_bytes()));
        return false;
    }
    keep(data);
    received_bytes_ += data.size();
    return true;
}

// Writes the wanted bytes of the next piece of the body to their place in the payload.
void ObjectAnswer::keep(std::span<const std::byte> data) {
    const auto& range = expected_.range;
    if (!range) {
        payload_.insert(payload_.end(), data.begin(), data.end());
        return;
    }
    const std::uint64_t at = received_bytes_ + (is_uncut() ? 0 : range->offset);  // in the object
    const std::uint64_t begin = std::max(at, range->offset);
    const std::uint64_t end = std::min(at + data.size(), range->offset + range->length);
    if (begin < end) {
        std::memcpy(
            payload_.data() + (begin - expected_.payload_offset),
            data.data() + (begin - at),
            end - begin);
    }
}

std::optional<OriginFailure> ObjectAnswer::failure(const Status& transport, WallTime now) const {
    if (refused_) {
        return refused_;
    }
    if (status_ != 0 && !is_good_status()) {
        return dialect_.failure_of_status(status_, headers_, error_body_, now);
    }
    if (!transport) {
        return failure_of_transport(transport.error());
    }
    if (received_bytes_ < body_bytes()) {
        return conflict(fmt::format(
            "changed at the origin: {} bytes now, {} when it was listed",
            received_bytes_,
            body_bytes()));
    }
    return std::nullopt;
}

std::optional<std::uint32_t> ObjectAnswer::stored_checksum() const {
    return expected_.range ? std::nullopt : dialect_.stored_checksum(headers_);
}

std::string ObjectAnswer::outcome(const Status& transport) const {
    if (status_ != 0) {
        return std::to_string(status_);
    }
    return transport ? "none" : std::string{to_string(transport.error().code)};
}

http::HttpSink sink_into(std::shared_ptr<ObjectAnswer> answer) {
    http::HttpSink sink;
    sink.on_response = [answer](int status, const http::Headers& headers) {
        answer->take_head(status, headers);
    };
    sink.on_data = [answer = std::move(answer)](std::span<const std::byte> data) {
        return answer->take_body(data);
    };
    return sink;
}

}  // namespace stoker::sidecar
