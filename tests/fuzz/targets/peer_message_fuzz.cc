// Heads of frames from other nodes.
#include <algorithm>

#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

using sidecar::PeerMessage;

void run(std::span<const std::byte> input) {
    const std::vector<std::byte> head{input.begin(), input.end()};
    const auto message = sidecar::decode_peer_head(head);
    if (message && head.size() <= sidecar::PeerFrame::kHeadMax) {
        expect(sidecar::encode_peer_head(*message) == head, "a head has one encoding");
    }
}

std::vector<std::string> seeds() {
    std::vector<std::string> heads;
    for (const PeerMessage& message : std::vector<PeerMessage>{
             sidecar::PeerHello{"uid-1", domain::RevisionId{7}, "node-1", 17},
             sidecar::PeerAsk{5, {1, 2, 3}},
             sidecar::PeerAnswer{6, 9, 0xDEADBEEFU},
             sidecar::PeerRefusal{7, 9, sidecar::PeerRefusalReason::kNotMine},
             sidecar::PeerLosses{"job-1/main", 3, {{{1, 2}, {0, 255}}, {{7}, {128}}}}}) {
        heads.push_back(string_of(sidecar::encode_peer_head(message)));
    }
    return heads;
}

}  // namespace stoker::fuzz
