#pragma once

#include <optional>
#include <vector>

#include "operator/controllers/controller_parts.h"
#include "operator/core/view/peer_book.h"

namespace stoker::control {

// Sends the groups of peers to the sidecars and answers their requests for peer certificates
// (docs/adr/0016-peers.md). Not thread-safe. The first call of step() begins the leadership.
class PeerKeeper {
public:
    // Issues no certificate if parts.issue_peer is empty.
    explicit PeerKeeper(const ControllerParts& parts)
        : parts_(parts) {}

    // `settled`: all sidecars have reported what they hold. Returns the jobs that read a dataset
    // whose group changed.
    std::vector<ObjectKey> step(const ClusterView& cluster, bool settled, const Moment& now);

    // The groups that the last step() sent, as the planner needs them.
    [[nodiscard]] std::vector<PeerNodes> planned(
        const ClusterView& cluster, const Moment& now) const {
        return book_ ? planned_peers(book_->groups(), cluster.reports, now)
                     : std::vector<PeerNodes>{};
    }

    // By what the groups' samples are placed since the last step(), by dataset uid.
    [[nodiscard]] std::map<std::string, Placing> placings() const {
        return book_ ? book_->placings() : std::map<std::string, Placing>{};
    }

private:
    void answer(const ClusterView& cluster, const WaitingPeerRequest& waiting);

    ControllerParts parts_;
    std::optional<PeerBook> book_;
};

}  // namespace stoker::control
