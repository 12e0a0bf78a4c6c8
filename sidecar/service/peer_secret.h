#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/peer_frames.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

using PeerSecret = decltype(local::Peer::secret);

// A connection to a leader, and the secret that proves a sidecar's right to it.
struct LeaderConnection {
    UniqueFd socket;
    local::Peer peer;
};

// Returns a secret from the kernel's random generator.
PeerSecret random_secret();

// Compares in constant time.
bool is_equal(const PeerSecret& one, const PeerSecret& other);

// Writes `secret` to control/secret, mode 0600, which only sidecars can read.
Status save_secret(Device& device, const std::string& control_directory, const PeerSecret& secret);

// kNotFound: no sidecar has led here yet. kCorruption: not a secret.
Result<PeerSecret> load_secret(Device& device, const std::string& control_directory);

}  // namespace stoker::sidecar
