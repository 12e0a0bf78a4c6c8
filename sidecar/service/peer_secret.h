#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/peer_frames.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

using PeerSecret = decltype(local::Peer::secret);

// A connection to a leader, and how a sidecar shows there that it may.
struct LeaderConnection {
    UniqueFd socket;
    local::Peer peer;
};

// From the kernel's generator.
PeerSecret random_secret();

// Compares in a time that says nothing about where they differ.
bool is_equal(const PeerSecret& one, const PeerSecret& other);

// Writes `secret` where only sidecars read it: control/secret, mode 0600.
Status save_secret(Device& device, const std::string& control_directory, const PeerSecret& secret);

// kNotFound: nobody has led here yet. kCorruption: not a secret.
Result<PeerSecret> load_secret(Device& device, const std::string& control_directory);

}  // namespace stoker::sidecar
