#include "sidecar/service/peer_server.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/log/log.h"

namespace stoker::sidecar {

PeerSession::PeerSession(PeerServer& server, std::unique_ptr<PeerChannel> channel)
    : server_(server),
      number_(++server.last_number_),
      channel_(std::move(channel)),
      wait_timer_(server.loop_) {
    wait_timer_.run_in(PeerServer::kWaitMax, [this] {
        if (PeerHandler* const handler = std::exchange(handler_, nullptr)) {
            handler->detach(*this);
        }
        refuse(PeerRefusalReason::kGoingAway);
    });
}

void PeerSession::welcome(const PeerHello& ours) {
    is_welcome_ = true;
    wait_timer_.cancel();
    send({encode_peer_head(ours), {}});
}

void PeerSession::send(PeerFrame frame) {
    sent_bytes_ += frame.head.size() + frame.payload.bytes.size();
    channel_->send(std::move(frame));
}

void PeerSession::refuse(PeerRefusalReason reason) {
    if (channel_ != nullptr) {
        send({encode_peer_head(PeerRefusal{0, 0, reason}), {}});
    }
    handler_ = nullptr;
    server_.end(*this);
}

void PeerSession::on_open(const PeerIdentity& peer) {
    identity_ = peer;
    if (peer.namespace_name != server_.namespace_name_) {
        log::warning("refused a peer of another namespace", {{"namespace", peer.namespace_name}});
        refuse(PeerRefusalReason::kNotMember);
    }
}

void PeerSession::on_frame(PeerFrame frame) {
    if (is_over_) {
        return;
    }
    const auto message = decode_peer_head(frame.head);
    if (!message || !frame.payload.bytes.empty()) {
        log::warning("a peer sent an invalid frame", {{"node", hello_.node}});
        server_.end(*this);
    } else if (handler_ == nullptr) {
        greet(*message);
    } else if (is_welcome_) {
        handler_->on_frame(*this, *message);
    } else {
        server_.end(*this);  // the peer must wait for our Hello before it sends frames
    }
}

void PeerSession::greet(const PeerMessage& message) {
    const auto* hello = std::get_if<PeerHello>(&message);
    if (hello == nullptr) {
        server_.end(*this);
        return;
    }
    hello_ = *hello;
    if (std::ranges::count(identity_.dataset_uids, hello_.dataset_uid) == 0) {
        log::warning(
            "refused a peer whose certificate is for other datasets", {{"node", hello_.node}});
        refuse(PeerRefusalReason::kNotMember);
        return;
    }
    PeerHandler* const handler = server_.route_(hello_.dataset_uid);
    if (handler == nullptr) {
        refuse(PeerRefusalReason::kGoingAway);
        return;
    }
    handler_ = handler;
    handler->attach(*this);
}

void PeerSession::on_drained() {
    if (handler_ != nullptr) {
        handler_->on_drained(*this);
    }
}

void PeerSession::on_end(const Error& /*error*/) {
    server_.end(*this);
}

PeerServer::PeerServer(EventLoop& loop, std::string namespace_name, Route route)
    : loop_(loop),
      namespace_name_(std::move(namespace_name)),
      route_(std::move(route)),
      tasks_(loop) {}

PeerServer::~PeerServer() {
    while (!sessions_.empty()) {
        end(*sessions_.begin()->second);
    }
}

Result<std::string> PeerServer::listen(PeerNetwork& network) {
    return network.listen([this](std::unique_ptr<PeerChannel> channel) -> PeerEvents& {
        return accept(std::move(channel));
    });
}

PeerEvents& PeerServer::accept(std::unique_ptr<PeerChannel> channel) {
    auto session = std::make_unique<PeerSession>(*this, std::move(channel));
    PeerSession& accepted = *session;
    sessions_.emplace(accepted.number(), std::move(session));
    return accepted;
}

// Destroys the session later: one of its own calls may be running. The network may close before it
// has sent the last frame: a peer learns the reason of a refusal only if there is time.
void PeerServer::end(PeerSession& session) {
    auto node = sessions_.extract(session.number());
    if (node.empty()) {
        return;
    }
    if (PeerHandler* const handler = std::exchange(session.handler_, nullptr)) {
        handler->detach(session);
    }
    session.wait_timer_.cancel();
    session.is_over_ = true;
    gone_.push_back(std::move(node.mapped()));
    if (gone_.size() == 1) {
        tasks_.post([this] { gone_.clear(); });
    }
}

}  // namespace stoker::sidecar
