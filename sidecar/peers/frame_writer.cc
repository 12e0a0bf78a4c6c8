#include "sidecar/peers/frame_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sidecar/peers/frame_reader.h"

namespace stoker::sidecar {

static_assert(std::endian::native == std::endian::little, "prefixes are little-endian");
static_assert(sizeof(std::uint32_t[2]) == kFramePrefixBytes);

std::size_t wire_bytes(const PeerFrame& frame) {
    return kFramePrefixBytes + frame.head.size() + frame.payload.bytes.size();
}

std::span<const std::byte> FrameWriter::record() {
    if (!record_.empty()) {
        return record_;
    }
    if (frames_.empty()) {
        return {};
    }
    const std::span<const std::byte> rest = rest_of_part();
    if (part_ == Part::kPayload && rest.size() >= kRecordBytes) {
        record_ = rest.first(kRecordBytes);
        skip(kRecordBytes);
    } else {
        gather();
        record_ = gathered_;
    }
    return record_;
}

void FrameWriter::gather() {
    gathered_.clear();
    gathered_.reserve(kRecordBytes);
    while (!frames_.empty() && gathered_.size() < kRecordBytes) {
        const std::span<const std::byte> rest = rest_of_part();
        const auto part = rest.first(std::min(rest.size(), kRecordBytes - gathered_.size()));
        gathered_.insert(gathered_.end(), part.begin(), part.end());
        skip(part.size());
    }
}

// The rest of the current part; never empty, because skip() leaves a part that is used up.
std::span<const std::byte> FrameWriter::rest_of_part() {
    const PeerFrame& frame = frames_.front();
    switch (part_) {
        case Part::kPrefix:
            if (used_ == 0) {
                prefix_ = {
                    static_cast<std::uint32_t>(frame.head.size()),
                    static_cast<std::uint32_t>(frame.payload.bytes.size())};
            }
            return std::as_bytes(std::span{prefix_}).subspan(used_);
        case Part::kHead:
            return std::span{frame.head}.subspan(used_);
        case Part::kPayload:
            break;
    }
    return frame.payload.bytes.subspan(used_);
}

void FrameWriter::skip(std::size_t count) {
    used_ += count;
    if (!rest_of_part().empty()) {
        return;
    }
    used_ = 0;
    if (part_ == Part::kPrefix) {
        part_ = Part::kHead;
    } else if (part_ == Part::kHead && !frames_.front().payload.bytes.empty()) {
        part_ = Part::kPayload;
    } else {
        part_ = Part::kPrefix;
        spend(frames_.front());
        frames_.pop_front();
    }
}

void FrameWriter::spend(PeerFrame& frame) {
    if (frame.payload.holder != nullptr) {
        spent_.push_back(std::move(frame.payload.holder));
    }
}

PayloadHolders FrameWriter::take_spent() {
    PayloadHolders spent = std::exchange(spent_, {});
    if (!record_.empty() && !spent.empty()) {
        spent_.push_back(std::move(spent.back()));
        spent.pop_back();
    }
    return spent;
}

PayloadHolders FrameWriter::clear() {
    record_ = {};
    for (PeerFrame& frame : frames_) {
        spend(frame);
    }
    frames_.clear();
    return take_spent();
}

}  // namespace stoker::sidecar
