#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Frames between sidecars: only over leader.sock, never from a trainer.
// docs/design/local-protocol.md, "Leader and followers".
namespace stoker::local {

inline constexpr std::size_t kSecretBytes = 32;

// First frame of a connection to leader.sock; a wrong secret ends it.
struct Peer {
    std::array<std::byte, kSecretBytes> secret{};  // the content of control/secret
    std::uint64_t sidecar = 0;                     // random; identifies the sending process

    bool operator==(const Peer&) const = default;
};

// Checks that the leader's loop responds. Between Peer and Hello, any number of times.
struct Ping {
    bool operator==(const Ping&) const = default;
};

struct Pong {
    bool operator==(const Pong&) const = default;
};

}  // namespace stoker::local
