#include "proto/local/peer_frames.h"

#include <algorithm>

namespace stoker::local {

void put_fields(WireWriter& out, const Peer& peer) {
    out.put_bytes(peer.secret).put(peer.sidecar);
}

void get_fields(WireReader& in, Peer& peer) {
    const auto secret = in.get_bytes(kSecretBytes);
    std::ranges::copy(secret, peer.secret.begin());
    peer.sidecar = in.get<std::uint64_t>();
}

void put_fields(WireWriter& /*out*/, const Ping& /*ping*/) {}

void get_fields(WireReader& /*in*/, Ping& /*ping*/) {}

void put_fields(WireWriter& /*out*/, const Pong& /*pong*/) {}

void get_fields(WireReader& /*in*/, Pong& /*pong*/) {}

}  // namespace stoker::local
