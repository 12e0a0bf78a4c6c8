#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "common/base/prng.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::test {

inline std::vector<std::byte> bytes_of(std::size_t count, std::uint64_t seed) {
    std::vector<std::byte> bytes(count);
    Prng prng{seed};
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(prng());
    }
    return bytes;
}

// A frame of random bytes that holds its payload.
inline sidecar::PeerFrame frame_of(std::size_t head, std::size_t payload, std::uint64_t seed) {
    sidecar::PeerFrame frame;
    frame.head = bytes_of(head, seed);
    if (payload > 0) {
        const auto held = std::make_shared<std::vector<std::byte>>(bytes_of(payload, ~seed));
        frame.payload = {*held, held};
    }
    return frame;
}

inline bool same(const sidecar::PeerFrame& a, const sidecar::PeerFrame& b) {
    return a.head == b.head && std::ranges::equal(a.payload.bytes, b.payload.bytes);
}

}  // namespace stoker::test
