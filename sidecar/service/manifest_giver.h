#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/current_revision.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

// Answers peers that ask for our manifest. Use it on the loop's thread.
class ManifestGiver {
public:
    // `source`: Origin::describe(). `state`: computes the answer while there is no manifest.
    ManifestGiver(const std::string& source, std::function<PeerManifestWait()> state);

    // Gives this manifest from now on; nullptr: none. `current`: as the node directory knows it.
    void offer(std::shared_ptr<const MappedManifest> manifest, CurrentRevision current);

    // The answer holds the manifest while it is being sent; it copies nothing. `is_old`: the origin
    // has changed since the listing; then only peers that ask for this very revision get it.
    [[nodiscard]] PeerFrame answer(const PeerManifestAsk& ask, bool is_old, WallTime now) const;

private:
    const std::uint64_t source_;
    std::function<PeerManifestWait()> state_;
    std::shared_ptr<const MappedManifest> manifest_;
    CurrentRevision current_;
};

}  // namespace stoker::sidecar
