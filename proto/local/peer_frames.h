#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The frames by which one sidecar knows another: only over leader.sock, never from a trainer.
// docs/design/local-protocol.md, "Leader and followers".
namespace stoker::local {

inline constexpr std::size_t kSecretBytes = 32;

// First frame of a connection to leader.sock; a wrong secret ends it.
struct Peer {
    std::array<std::byte, kSecretBytes> secret{};  // control/secret
    std::uint64_t sidecar = 0;                     // the process that speaks, a random number

    bool operator==(const Peer&) const = default;
};

// Asks whether the leader's loop turns. Between Peer and Hello, any number of times.
struct Ping {
    bool operator==(const Ping&) const = default;
};

struct Pong {
    bool operator==(const Pong&) const = default;
};

}  // namespace stoker::local
