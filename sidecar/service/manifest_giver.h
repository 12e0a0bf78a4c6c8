#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

// Answers peers that ask for our manifest. Use it on the loop's thread.
class ManifestGiver {
public:
    // `source`: Origin::describe(). `state`: computes the answer while there is no manifest.
    ManifestGiver(const std::string& source, std::function<PeerManifestWait()> state);

    // Answers with this manifest from now on; nullptr: none. `job_uid`: the job whose key has
    // listed or read the dataset; empty: not known.
    void offer(std::shared_ptr<const MappedManifest> manifest, std::string job_uid);

    // The answer shares the manifest's bytes while it is sent. `is_old`: the origin has changed
    // since the listing; then only peers that ask for this very revision get the manifest.
    [[nodiscard]] PeerFrame answer(const PeerManifestAsk& ask, bool is_old) const;

private:
    const std::uint64_t source_;
    std::function<PeerManifestWait()> state_;
    std::shared_ptr<const MappedManifest> manifest_;
    std::string job_uid_;
};

}  // namespace stoker::sidecar
