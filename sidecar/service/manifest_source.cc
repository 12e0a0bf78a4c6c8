#include "sidecar/service/manifest_source.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/log/log.h"

namespace stoker::sidecar {

ManifestSource::ManifestSource(
    PeerNetwork& network, const PeerSelf& self, control::PeerMember member, Callbacks callbacks)
    : self_(self),
      member_(std::move(member)),
      callbacks_(std::move(callbacks)),
      channel_(network.connect(member_.address, *this)) {
    PeerHello hello = self_.hello;
    hello.revision = {};  // we have none
    channel_->send({encode_peer_head(hello), {}});
}

void ManifestSource::ask(const PeerManifestAsk& ask) {
    ++asked_;
    if (is_open_) {
        channel_->send({encode_peer_head(ask), {}});
    } else {
        unsent_.push_back(ask);
    }
}

void ManifestSource::end() {
    channel_.reset();
    const auto ended = callbacks_.ended;
    ended(is_open_);
}

void ManifestSource::on_open(const PeerIdentity& peer) {
    if (peer.namespace_name != self_.namespace_name ||
        std::ranges::count(peer.dataset_uids, self_.hello.dataset_uid) == 0) {
        log::warning(
            "a peer's certificate is for another dataset",
            {{"node", member_.node}, {"address", member_.address}});
        end();
    }
}

void ManifestSource::on_frame(PeerFrame frame) {
    const auto message = decode_peer_head(frame.head);
    const auto* hello = message ? std::get_if<PeerHello>(&*message) : nullptr;
    const auto* piece = message ? std::get_if<PeerManifestPiece>(&*message) : nullptr;
    const auto* wait = message ? std::get_if<PeerManifestWait>(&*message) : nullptr;
    if (hello != nullptr && !is_open_ && hello->dataset_uid == self_.hello.dataset_uid &&
        hello->node == member_.node && hello->generation >= member_.generation) {
        is_open_ = true;
        for (const PeerManifestAsk& ask : std::exchange(unsent_, {})) {
            channel_->send({encode_peer_head(ask), {}});
        }
        return;
    }
    if (!is_open_ || asked_ == 0 || (piece == nullptr && wait == nullptr)) {
        end();  // it refuses us, or breaks the protocol
        return;
    }
    --asked_;
    const Callbacks callbacks = callbacks_;
    if (piece != nullptr) {
        callbacks.piece(*piece, std::move(frame.payload));
    } else {
        callbacks.wait(*wait);
    }
}

void ManifestSource::on_end(const Error& error) {
    log::info(
        "the connection to a peer ended",
        {{"node", member_.node}, {"address", member_.address}, {"error", error.message}});
    end();
}

}  // namespace stoker::sidecar
