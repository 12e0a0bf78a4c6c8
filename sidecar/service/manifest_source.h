#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/peer_fetches.h"
#include "wire/control/orders.h"

namespace stoker::sidecar {

// A channel to one member of the group that we ask for its manifest. Use it on the loop's thread. A
// callback may destroy it.
class ManifestSource final : public PeerEvents {
public:
    struct Callbacks {
        std::function<void(const PeerManifestPiece&, HeldBytes)> piece;
        std::function<void(const PeerManifestWait&)> wait;
        // The channel has ended. `was_open`: the member had answered our Hello.
        std::function<void(bool was_open)> ended;
    };

    // Connects. The arguments by reference must outlive it.
    ManifestSource(
        PeerNetwork& network,
        const PeerSelf& self,
        control::PeerMember member,
        Callbacks callbacks);

    [[nodiscard]] const control::PeerMember& member() const { return member_; }

    // Sends the ask, once the member has answered our Hello.
    void ask(const PeerManifestAsk& ask);

    // Whether an answer is awaited.
    [[nodiscard]] bool is_asked() const { return asked_ > 0; }

    void on_open(const PeerIdentity& peer) override;
    void on_frame(PeerFrame frame) override;
    void on_end(const Error& error) override;

private:
    void end();

    const PeerSelf& self_;
    const control::PeerMember member_;
    Callbacks callbacks_;
    bool is_open_ = false;  // its Hello has come
    std::size_t asked_ = 0;
    std::vector<PeerManifestAsk> unsent_;  // until it is open
    std::unique_ptr<PeerChannel> channel_;
};

}  // namespace stoker::sidecar
