#include "sidecar/peers/tls_network.h"

#include <utility>

#include "common/base/check.h"
#include "common/config/host_port.h"
#include "sidecar/peers/tcp.h"
#include "sidecar/peers/tls_channel.h"

namespace stoker::sidecar {

namespace {

std::string reached_at(const std::string& address, const std::string& bound) {
    if (address.empty()) {
        return bound;
    }
    const bool has_port = config::parse_host_port(address).has_value();
    return has_port ? address : address + bound.substr(bound.rfind(':'));
}

}  // namespace

TlsNetwork::TlsNetwork(EventLoop& loop, Options options)
    : options_(std::move(options)),
      tasks_(loop),
      thread_(std::make_shared<NetworkThread>(loop.clock(), options_.limits)) {}

TlsNetwork::~TlsNetwork() = default;

Result<std::string> TlsNetwork::listen(Accept accept) {
    STOKER_TRY(UniqueFd socket, listen_tcp(options_.host, options_.port));
    STOKER_TRY(const std::string bound, local_address(socket.get()));
    auto on_accept = [limits = options_.limits,
                      to_sidecar = tasks_.poster(),
                      thread = std::weak_ptr{thread_},
                      accept = std::move(accept)](ConnectionId id) {
        const auto state = std::make_shared<ChannelState>(thread, id, limits, to_sidecar);
        ConnectionEnds ends = ends_of(state);
        ends.on_open = [state, accept] {
            state->to_sidecar([state, accept] { accept_channel(state, accept); });
        };
        return ends;
    };
    thread_->listen(std::move(socket), std::move(on_accept));
    return reached_at(options_.address, bound);
}

void TlsNetwork::set_credentials(PeerCredentials credentials) {
    thread_->set_credentials(credentials);
}

std::unique_ptr<PeerChannel> TlsNetwork::connect(const std::string& address, PeerEvents& events) {
    const ConnectionId id = thread_->new_id();
    const auto state =
        std::make_shared<ChannelState>(thread_, id, options_.limits, tasks_.poster());
    state->is_accepted = true;
    state->events = &events;
    thread_->connect(id, address, ends_of(state));
    return std::make_unique<TlsChannel>(state);
}

}  // namespace stoker::sidecar
