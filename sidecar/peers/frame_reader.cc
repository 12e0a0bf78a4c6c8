#include "sidecar/peers/frame_reader.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "common/base/wire.h"

namespace stoker::sidecar {

std::span<std::byte> FrameReader::room() {
    switch (part_) {
        case Part::kPrefix:
            return std::span{prefix_}.subspan(used_);
        case Part::kHead:
            return std::span{head_}.subspan(used_);
        case Part::kPayload:
            break;
    }
    return {payload_.get() + used_, payload_bytes_ - used_};
}

Result<std::optional<PeerFrame>> FrameReader::filled(std::size_t count) {
    used_ += count;
    if (!room().empty()) {
        return std::nullopt;
    }
    if (part_ == Part::kPrefix) {
        STOKER_TRY_VOID(begin_frame());
        return std::nullopt;
    }
    if (part_ == Part::kHead && payload_bytes_ > 0) {
        begin_payload();
        return std::nullopt;
    }
    return finish_frame();
}

Status FrameReader::begin_frame() {
    WireReader lengths{prefix_};
    const auto head_bytes = lengths.get<std::uint32_t>();
    const auto payload_bytes = lengths.get<std::uint32_t>();
    if (head_bytes == 0 || head_bytes > PeerFrame::kHeadMax || payload_bytes > payload_max_) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format(
                "a peer's frame has a head of {} bytes and a payload of {} bytes",
                head_bytes,
                payload_bytes));
    }
    head_.resize(head_bytes);
    payload_bytes_ = payload_bytes;
    part_ = Part::kHead;
    used_ = 0;
    return {};
}

// Does not zero the buffer: memory that a peer announces and never fills then costs no pages.
void FrameReader::begin_payload() {
    payload_ = pool_->take(payload_bytes_);
    part_ = Part::kPayload;
    used_ = 0;
}

PeerFrame FrameReader::finish_frame() {
    PeerFrame frame;
    frame.head = std::exchange(head_, {});
    if (payload_ != nullptr) {
        frame.payload.bytes = {payload_.get(), payload_bytes_};
        frame.payload.holder = std::exchange(payload_, nullptr);
    }
    part_ = Part::kPrefix;
    used_ = 0;
    return frame;
}

}  // namespace stoker::sidecar
