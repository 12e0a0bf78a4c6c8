#include "sidecar/origin/s3_part.h"

#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "common/base/crc32c.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kErrorBodyBytesMax = 64 * 1024;

}  // namespace

PartFetch::PartFetch(std::shared_ptr<ObjectFetch> object, std::optional<ByteRange> range)
    : object_(std::move(object)),
      range_(range) {}

std::span<std::byte> PartFetch::target() const {
    const std::span<std::byte> payload{object_->payload};
    return range_ ? payload.subspan(range_->offset, range_->length) : payload;
}

http::HttpSink PartFetch::begin_attempt(
    const Clock& clock, std::function<void(std::shared_ptr<PartFetch>)> on_ended) {
    ++attempt_;
    status_ = 0;
    headers_.clear();
    error_body_.clear();
    refused_.reset();
    first_byte_.reset();
    received_bytes_ = 0;
    const TimePoint sent = clock.now();
    http::HttpSink sink;
    sink.on_response = [self = shared_from_this(), &clock, sent](
                           int status, const http::Headers& headers) {
        self->take_head(status, headers, clock.now() - sent);
    };
    sink.on_data = [self = shared_from_this()](std::span<const std::byte> data) {
        return self->take_body(data);
    };
    sink.on_done =
        [self = shared_from_this(), &clock, sent, ended = std::move(on_ended)](Status status) {
            self->duration_ = clock.now() - sent;
            self->transport_ = std::move(status);
            ended(self);
        };
    return sink;
}

void PartFetch::take_head(int status, const http::Headers& headers, Duration first_byte) {
    status_ = status;
    headers_ = headers;
    first_byte_ = first_byte;
    if (is_good_status()) {
        const OriginFetch& wanted = object_->request;
        refused_ = check_object_head({wanted.etag, wanted.size_bytes, range_}, status, headers);
    }
}

bool PartFetch::take_body(std::span<const std::byte> data) {
    if (refused_) {
        return false;
    }
    if (!is_good_status()) {
        error_body_.append(reinterpret_cast<const char*>(data.data()), data.size());
        return error_body_.size() <= kErrorBodyBytesMax;
    }
    const std::span<std::byte> place = target();
    if (data.size() > place.size() - received_bytes_) {
        refused_ = S3Failure{
            {ErrorCode::kConflict,
             fmt::format("changed at the origin: more than the {} bytes listed", place.size())}};
        return false;
    }
    std::memcpy(place.data() + received_bytes_, data.data(), data.size());
    received_bytes_ += data.size();
    return true;
}

std::optional<S3Failure> PartFetch::failure(WallTime now) const {
    if (refused_) {
        return refused_;
    }
    if (status_ != 0 && !is_good_status()) {
        return failure_of_status(status_, headers_, error_body_, now);
    }
    if (!transport_.has_value()) {
        return failure_of_transport(transport_.error());
    }
    const std::span<const std::byte> bytes = target();
    if (received_bytes_ < bytes.size()) {
        const std::string message = fmt::format(
            "changed at the origin: {} bytes now, {} when it was listed",
            received_bytes_,
            bytes.size());
        return S3Failure{{ErrorCode::kConflict, message}};
    }
    if (const auto stored = stored_crc32c(headers_);
        stored && !range_ && *stored != crc32c(bytes)) {
        const char* message = "the bytes do not match the checksum stored at the origin";
        return S3Failure{{ErrorCode::kCorruption, message}, true};
    }
    return std::nullopt;
}

std::string PartFetch::outcome() const {
    if (status_ != 0) {
        return std::to_string(status_);
    }
    return transport_.has_value() ? "none" : std::string{to_string(transport_.error().code)};
}

}  // namespace stoker::sidecar
