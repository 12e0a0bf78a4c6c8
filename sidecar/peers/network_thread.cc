#include "sidecar/peers/network_thread.h"

#include <utility>

#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "sidecar/peers/tcp.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kLogRefusalsEvery = std::chrono::minutes{1};

}  // namespace

NetworkThread::NetworkThread(const Clock& clock, const NetworkLimits& limits)
    : limits_(limits),
      loop_(clock),
      thread_(start_thread("peers", [this](const std::stop_token&) { loop_.run(); })) {}

NetworkThread::~NetworkThread() {
    loop_.stop();
    thread_.join();
}

void NetworkThread::listen(UniqueFd socket, OnAccept on_accept) {
    // Wraps the socket: a task must be copyable.
    auto shared = std::make_shared<UniqueFd>(std::move(socket));
    loop_.post([this, shared, on_accept = std::move(on_accept)] {
        on_accept_ = on_accept;
        listener_.emplace(loop_, std::move(*shared), "peers", [this](UniqueFd accepted) {
            accept(std::move(accepted));
        });
    });
}

void NetworkThread::set_credentials(const PeerCredentials& credentials) {
    auto context = make_tls_context(credentials);
    if (context) {
        *context_.lock() = *std::move(context);
    } else {
        log::error(
            "the certificate for connections to peers cannot be used; keeping the previous one",
            {{"error", context.error().message}});
    }
}

void NetworkThread::connect(ConnectionId id, std::string address, ConnectionEnds ends) {
    loop_.post([this, id, address = std::move(address), ends = std::move(ends)] {
        connect_now(id, address, ends);
    });
}

void NetworkThread::close(ConnectionId id) {
    loop_.post([this, id] { erase(id); });
}

void NetworkThread::flush(ConnectionId id) {
    loop_.post([this, id] { with(id, &TlsConnection::flush); });
}

void NetworkThread::read_on(ConnectionId id) {
    loop_.post([this, id] { with(id, &TlsConnection::read_on); });
}

NetworkCounts NetworkThread::counts() const {
    return {accepted_.load(), refused_.load(), crowded_out_.load()};
}

void NetworkThread::connect_now(ConnectionId id, const std::string& address, ConnectionEnds ends) {
    const auto queues = ends.queues;
    const auto on_event = ends.on_event;
    const Status status = [&]() -> Status {
        if (*context_.lock() == nullptr) {
            return fail(ErrorCode::kUnavailable, "there is no certificate for peers yet");
        }
        STOKER_TRY(UniqueFd socket, connect_tcp(address));
        return begin(id, std::move(socket), TlsEnd::kClient, std::move(ends));
    }();
    if (!status && queues->deliver(status.error())) {
        on_event();
    }
}

// Before the first credentials a connection is closed at once, so that the other end need not wait.
void NetworkThread::accept(UniqueFd socket) {
    accepted_.fetch_add(1);
    if (*context_.lock() == nullptr) {
        return;
    }
    if (accepted_open_ >= limits_.accepted_max) {
        crowded_out_.fetch_add(1);
        if (!make_room()) {
            log_refusal(
                {ErrorCode::kResourceExhausted, "too many connections from peers are open"});
            return;
        }
    }
    const ConnectionId id = new_id();
    if (auto status = begin(id, std::move(socket), TlsEnd::kServer, on_accept_(id)); !status) {
        log_refusal(status.error());
    }
}

// Closes the connection whose handshake has been unfinished for the longest time. False: there is
// none, because all handshakes are finished.
bool NetworkThread::make_room() {
    std::optional<ConnectionId> oldest;
    for (const auto& [id, connection] : connections_) {
        if (connection.is_accepted && !connection.tls->is_open() && (!oldest || id < *oldest)) {
            oldest = id;
        }
    }
    if (oldest) {
        erase(*oldest);
    }
    return oldest.has_value();
}

Status NetworkThread::begin(ConnectionId id, UniqueFd socket, TlsEnd end, ConnectionEnds ends) {
    set_peer_options(socket.get(), limits_.silence_max);
    STOKER_TRY(
        auto tls,
        TlsConnection::make(
            loop_,
            std::move(socket),
            TlsContext{*context_.lock()},
            std::move(ends.queues),
            {end,
             end == TlsEnd::kServer ? limits_.asked_max : limits_.payload_max,
             pool_,
             limits_.handshake_max},
            {std::move(ends.on_event), std::move(ends.on_open), [this, id](const Error& error) {
                 ended(id, error);
             }}));
    const bool is_accepted = end == TlsEnd::kServer;
    accepted_open_ += is_accepted ? 1 : 0;
    connections_[id] = {std::move(tls), is_accepted};
    return {};
}

void NetworkThread::ended(ConnectionId id, const Error& error) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && found->second.is_accepted &&
        error.code == ErrorCode::kForbidden) {
        refused_.fetch_add(1);
        log_refusal(error);
    }
    close(id);  // closed later, because the connection is still in use
}

void NetworkThread::log_refusal(const Error& error) {
    const TimePoint now = loop_.now();
    if (!refusal_logged_ || now - *refusal_logged_ >= kLogRefusalsEvery) {
        refusal_logged_ = now;
        log::warning(
            "refused the connection of a peer; further refusals are logged once a minute",
            {{"error", error.message}, {"refusedSoFar", refused_.load()}});
    }
}

void NetworkThread::erase(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found != connections_.end()) {
        accepted_open_ -= found->second.is_accepted ? 1 : 0;
        connections_.erase(found);
    }
}

void NetworkThread::with(ConnectionId id, void (TlsConnection::*method)()) {
    const auto found = connections_.find(id);
    if (found != connections_.end()) {
        (*found->second.tls.*method)();
    }
}

}  // namespace stoker::sidecar
