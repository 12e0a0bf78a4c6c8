#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/base/result.h"
#include "sidecar/peers/payload_pool.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

// Before each frame on the wire: the lengths of head and payload, as two little-endian u32.
inline constexpr std::size_t kFramePrefixBytes = 8;

// Cuts a peer's bytes into frames. room() tells where to put the next bytes, so that they are
// received without another copy: a payload goes straight into the buffer that its frame will hold.
// Use it on one thread.
class FrameReader {
public:
    FrameReader(std::size_t payload_max, std::shared_ptr<PayloadPool> pool)
        : payload_max_(payload_max),
          pool_(std::move(pool)) {}

    // The unfilled bytes of the part that is being read: never empty. Valid until filled().
    [[nodiscard]] std::span<std::byte> room();

    // Call when the first `count` bytes of room() are filled. Returns the frame that they complete,
    // if any. kCorruption: a length is out of bounds (no memory was taken for it); do not use the
    // reader afterwards.
    Result<std::optional<PeerFrame>> filled(std::size_t count);

    // Whether the last frame is complete and the next one has not begun.
    [[nodiscard]] bool is_between_frames() const { return part_ == Part::kPrefix && used_ == 0; }

private:
    enum class Part { kPrefix, kHead, kPayload };

    Status begin_frame();
    void begin_payload();
    PeerFrame finish_frame();

    std::size_t payload_max_;
    std::shared_ptr<PayloadPool> pool_;
    Part part_ = Part::kPrefix;
    std::size_t used_ = 0;  // bytes of the part that are filled
    std::array<std::byte, kFramePrefixBytes> prefix_{};
    std::size_t payload_bytes_ = 0;
    std::vector<std::byte> head_{};
    std::shared_ptr<std::byte[]> payload_{};
};

}  // namespace stoker::sidecar
