#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/certificates/authority.h"
#include "sidecar/peers/peer_key.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::test {

inline WallTime wall_now() {
    return SystemClock{}.wall_now();
}

inline std::string peer_uri(const std::string& namespace_name, const std::string& dataset_uid) {
    return "stoker://namespace/" + namespace_name + "/dataset/" + dataset_uid;
}

// The operator's part: an authority that answers the requests of sidecars.
struct PeerAuthority {
    control::Authority authority =
        control::advance_authority(std::nullopt, "stoker", {}, wall_now()).value();

    // Issued at `now` for these URIs; none: for a peer of dataset "u" of namespace "team".
    [[nodiscard]] sidecar::PeerCredentials credentials(
        std::vector<std::string> uris, WallTime now = wall_now()) const {
        if (uris.empty()) {
            uris.push_back(peer_uri("team", "u"));
        }
        const sidecar::PeerKey key = sidecar::make_peer_key().value();
        return {
            control::issue_peer_leaf(authority, key.request, uris, {}, now).value(),
            key.key,
            control::trust_bundle(authority)};
    }
};

}  // namespace stoker::test
