#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

using PayloadHolders = std::vector<std::shared_ptr<const void>>;

// Number of bytes of one frame on the wire.
std::size_t wire_bytes(const PeerFrame& frame);

// Cuts queued frames into TLS records. A record inside a payload is a view of the payload's bytes;
// bytes around the ends of payloads (prefixes, heads, small payloads) are copied together, so that
// small frames share a record. Use it on one thread.
class FrameWriter {
public:
    static constexpr std::size_t kRecordBytes = std::size_t{16} << 10U;  // the most that TLS allows

    void push(PeerFrame frame) { frames_.push_back(std::move(frame)); }

    // The unwritten bytes of the current record; empty: everything is written. Valid until wrote().
    std::span<const std::byte> record();

    // Whether another record follows the current one.
    [[nodiscard]] bool has_more() const { return !frames_.empty(); }

    // Call when the first `count` bytes of record() are written.
    void wrote(std::size_t count) { record_ = record_.subspan(count); }

    // Returns the holders of payloads that are no longer needed. The caller decides on which thread
    // to release them.
    [[nodiscard]] PayloadHolders take_spent();

    // Drops all frames; returns all holders.
    [[nodiscard]] PayloadHolders clear();

private:
    enum class Part { kPrefix, kHead, kPayload };

    void gather();
    std::span<const std::byte> rest_of_part();
    void skip(std::size_t count);
    void spend(PeerFrame& frame);

    std::deque<PeerFrame> frames_{};  // the first one may be partly in records already
    Part part_ = Part::kPrefix;       // part of the first frame that comes next
    std::size_t used_ = 0;
    std::array<std::uint32_t, 2> prefix_{};  // prefix of the first frame
    std::vector<std::byte> gathered_{};      // buffer for a record of copied bytes
    std::span<const std::byte> record_{};
    PayloadHolders spent_{};  // the record may still view the last one's payload
};

}  // namespace stoker::sidecar
