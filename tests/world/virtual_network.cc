#include "tests/world/virtual_network.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/check.h"
#include "common/base/split.h"

namespace stoker::world {

namespace {

using Side = VirtualConnection::Side;
constexpr Side kClient = VirtualConnection::kClient;
constexpr Side kServer = VirtualConnection::kServer;
constexpr Duration kKnockAgain = std::chrono::seconds{1};  // TCP sends a SYN again

// One end of a connection, as a sidecar holds it.
class VirtualChannel final : public sidecar::PeerChannel {
public:
    VirtualChannel(std::shared_ptr<VirtualConnection> connection, Side side)
        : connection_(std::move(connection)),
          side_(side) {}

    ~VirtualChannel() override { connection_->close(side_); }

    void send(sidecar::PeerFrame frame) override { connection_->send(side_, std::move(frame)); }

    [[nodiscard]] std::size_t unsent_bytes() const override {
        return connection_->unsent_bytes(side_);
    }

private:
    std::shared_ptr<VirtualConnection> connection_;
    Side side_;
};

}  // namespace

std::string VirtualLeaf::text() const {
    return fmt::format(
        "{}|{}|{}|{}",
        authority,
        identity.namespace_name,
        fmt::join(identity.dataset_uids, ","),
        until.count());
}

std::optional<VirtualLeaf> VirtualLeaf::parse(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '|');
    Duration::rep until = 0;
    if (parts.size() != 4 ||
        std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), until).ec !=
            std::errc{}) {
        return std::nullopt;
    }
    const std::vector<std::string_view> uids = split(parts[2], ',');
    return VirtualLeaf{
        std::string{parts[0]},
        {std::string{parts[1]}, {uids.begin(), uids.end()}},
        Duration{until}};
}

VirtualPeers::VirtualPeers(
    VirtualNetwork& network, Program& process, std::string node, std::string address)
    : network_(network),
      process_(process),
      node_(std::move(node)),
      address_(std::move(address)) {
    network_.processes_.push_back(this);
    network_.dark_.erase(address_);
}

VirtualPeers::~VirtualPeers() {
    die(true);
    std::erase(network_.processes_, this);
}

Result<std::string> VirtualPeers::listen(Accept accept) {
    STOKER_CHECK(!accept_, "listen() is called once");
    accept_ = std::move(accept);
    return address_;
}

void VirtualPeers::set_credentials(sidecar::PeerCredentials credentials) {
    leaf_ = VirtualLeaf::parse(credentials.chain);
    trust_ = credentials.trust;
}

std::unique_ptr<sidecar::PeerChannel> VirtualPeers::connect(
    const std::string& address, sidecar::PeerEvents& events) {
    const auto connection = std::make_shared<VirtualConnection>(network_.wire_);
    connection->set_process(kClient, process_, node_, address_);
    connection->set_events(kClient, events);
    network_.connections_.push_back(connection);
    if (is_dead_ || !leaf_) {
        connection->fail(kClient, {ErrorCode::kUnavailable, "no certificate yet"});
    } else {
        network_.connect(connection, address);
    }
    return std::make_unique<VirtualChannel>(connection, kClient);
}

void VirtualPeers::die(bool is_told) {
    if (std::exchange(is_dead_, true)) {
        return;
    }
    for (const auto& connection : network_.living()) {
        for (const Side side : {kClient, kServer}) {
            if (connection->process(side) == &process_) {
                connection->lose(side, is_told);
                if (!is_told) {
                    connection->fail(
                        side == kClient ? kServer : kClient,
                        {ErrorCode::kUnavailable, "the peer answers nothing"},
                        VirtualNetwork::kUserTimeout);
                }
            }
        }
    }
}

VirtualNetwork::VirtualNetwork(Schedule& schedule, Speed speed, std::uint64_t seed)
    : schedule_(schedule),
      speed_(speed),
      chance_(seed),
      wire_{
          schedule,
          [this](const auto& from, const auto& to, std::size_t bytes) {
              return transmit(from, to, bytes);
          },
          [this](const auto& from, const auto& to) { return is_cut(from, to); },
          [this](const auto& connection, std::size_t to, auto& payload) {
              deliver(connection, to, payload);
          }} {}

// The connections that an end still uses, oldest first.
std::vector<std::shared_ptr<VirtualConnection>> VirtualNetwork::living() {
    std::vector<std::shared_ptr<VirtualConnection>> found;
    std::erase_if(connections_, [&found](const auto& weak) {
        auto connection = weak.lock();
        const bool is_gone = connection == nullptr;
        if (!is_gone) {
            found.push_back(std::move(connection));
        }
        return is_gone;
    });
    return found;
}

Duration VirtualNetwork::transmit(
    const std::string& from, const std::string& to, std::size_t bytes) {
    double factor = 1;
    for (const std::string& node : {from, to}) {
        const auto found = slow_.find(node);
        if (found != slow_.end() && found->second.second > schedule_.now()) {
            factor = std::max(factor, found->second.first);
        }
    }
    const double seconds = factor * static_cast<double>(bytes) / speed_.bytes_per_second;
    TimePoint& is_free_at = link_free_[{from, to}];
    is_free_at =
        std::max(is_free_at, schedule_.now()) + Duration{static_cast<Duration::rep>(seconds * 1e9)};
    const double delay_s = factor * seconds_of(speed_.delay) * (0.5 + 1.5 * chance_.unit());
    return is_free_at - schedule_.now() + Duration{static_cast<Duration::rep>(delay_s * 1e9)};
}

void VirtualNetwork::deliver(
    const VirtualConnection& connection, std::size_t to, std::vector<std::byte>& payload) {
    const Side side = to == kClient ? kClient : kServer;
    payload_bytes_[connection.node(side)] += payload.size();
    const auto corrupt = corrupt_.find(connection.node(VirtualConnection::other(side)));
    if (corrupt != corrupt_.end() && corrupt->second > schedule_.now()) {
        payload[chance_.below(payload.size())] ^= std::byte{0x10};
    }
    if (on_payload) {
        on_payload(connection.identity(kClient), connection.identity(kServer));
    }
}

void VirtualNetwork::connect(
    const std::shared_ptr<VirtualConnection>& connection, const std::string& address) {
    knock(connection, address);
    schedule_.run_in(kHandshake, [weak = std::weak_ptr{connection}] {
        const auto late = weak.lock();
        if (late != nullptr && !late->is_open(kClient)) {
            late->fail(kClient, {ErrorCode::kUnavailable, "the handshake took too long"});
        }
    });
}

// Sends a SYN; without an answer it is sent again.
void VirtualNetwork::knock(
    const std::shared_ptr<VirtualConnection>& connection, const std::string& address) {
    const VirtualPeers* const server = listener(address);
    const std::string& node = connection->node(kClient);
    const Duration takes = transmit(node, server == nullptr ? node : server->node_, 0);
    schedule_.run_in(takes, [this, address, weak = std::weak_ptr{connection}] {
        const auto knocking = weak.lock();
        if (knocking == nullptr || !knocking->is_alive(kClient)) {
            return;
        }
        if (is_silent(knocking->node(kClient), address)) {
            schedule_.run_in(kKnockAgain, [this, address, weak] {
                const auto again = weak.lock();
                if (again != nullptr && again->is_alive(kClient)) {
                    knock(again, address);
                }
            });
        } else if (const auto error = refusal(*knocking, address)) {
            knocking->fail(kClient, *error, speed_.delay);
        } else {
            accept(knocking, *listener(address));
        }
    });
}

// A connection from the node to the address gets no answer now.
bool VirtualNetwork::is_silent(const std::string& node, const std::string& address) const {
    const VirtualPeers* const server = listener(address);
    const auto refused = refused_.find(address);
    return dark_.contains(address) ||
           (server != nullptr && (is_cut(node, server->node_) || is_cut(server->node_, node))) ||
           (refused != refused_.end() && refused->second.until > schedule_.now() &&
            refused->second.how == Refusal::kSilence);
}

bool VirtualNetwork::is_valid(const VirtualLeaf& leaf, const std::string& trust) const {
    return leaf.authority == trust && schedule_.passed() < leaf.until;
}

// Why the address refuses the connection; nullopt: it accepts.
std::optional<Error> VirtualNetwork::refusal(
    const VirtualConnection& connection, const std::string& address) const {
    const VirtualPeers* const server = listener(address);
    const VirtualPeers* const client = client_of(connection);
    const auto refused = refused_.find(address);
    if (server == nullptr || client == nullptr ||
        (refused != refused_.end() && refused->second.until > schedule_.now())) {
        return Error{ErrorCode::kUnavailable, "connection refused"};
    }
    if (!server->leaf_ || !is_valid(*client->leaf_, server->trust_) ||
        !is_valid(*server->leaf_, client->trust_)) {
        return Error{ErrorCode::kForbidden, "the handshake failed: bad certificate"};
    }
    return std::nullopt;
}

VirtualPeers* VirtualNetwork::client_of(const VirtualConnection& connection) const {
    const auto found = std::ranges::find_if(processes_, [&connection](const VirtualPeers* peers) {
        return connection.process(kClient) == &peers->process_;
    });
    return found == processes_.end() ? nullptr : *found;
}

VirtualPeers* VirtualNetwork::listener(const std::string& address) const {
    const auto found = std::ranges::find_if(processes_, [&address](const VirtualPeers* peers) {
        return peers->address_ == address && !peers->is_dead_ && peers->accept_;
    });
    return found == processes_.end() ? nullptr : *found;
}

// The server's process takes the connection when its loop runs.
void VirtualNetwork::accept(
    const std::shared_ptr<VirtualConnection>& connection, VirtualPeers& server) {
    connection->set_process(kServer, server.process_, server.node_, server.address_);
    const sidecar::PeerIdentity client = client_of(*connection)->leaf_->identity;
    connection->post(kServer, [connection, client, &server] {
        if (!connection->is_alive(kClient)) {
            return;  // the handshake never ends
        }
        sidecar::PeerEvents& events =
            server.accept_(std::make_unique<VirtualChannel>(connection, kServer));
        connection->set_events(kServer, events);
        connection->open(client, server.leaf_->identity);
    });
}

bool VirtualNetwork::is_cut(const std::string& from, const std::string& to) const {
    const auto cut = cuts_.find({from, to});
    return cut != cuts_.end() && cut->second.second > schedule_.now();
}

void VirtualNetwork::cut(const std::string& from, const std::string& to, Duration lasts) {
    const TimePoint now = schedule_.now();
    auto& [since, until] = cuts_[{from, to}];
    if (until <= now) {
        since = now;
    }
    until = std::max(until, now + lasts);
    schedule_.run_in(lasts, [this, from, to] { resume(from, to); });
    schedule_.run_in(kUserTimeout, [this, from, to] { give_up(from, to); });
}

void VirtualNetwork::resume(const std::string& one, const std::string& other) {
    for (const auto& connection : living()) {
        const Link link{connection->node(kClient), connection->node(kServer)};
        if (link == Link{one, other} || link == Link{other, one}) {
            connection->resume();
        }
    }
}

// Ends the connections of a link that has been cut for long, in whichever direction.
void VirtualNetwork::give_up(const std::string& one, const std::string& other) {
    if (!is_cut(one, other) || schedule_.now() - cuts_[{one, other}].first < kUserTimeout) {
        return;
    }
    const Error error{ErrorCode::kUnavailable, "the peer answers nothing"};
    for (const auto& connection : living()) {
        const Link link{connection->node(kClient), connection->node(kServer)};
        if (link == Link{one, other} || link == Link{other, one}) {
            connection->fail(kClient, error);
            connection->fail(kServer, error);
        }
    }
}

void VirtualNetwork::slow(const std::string& node, double factor, Duration lasts) {
    slow_[node] = {factor, schedule_.now() + lasts};
}

void VirtualNetwork::corrupt(const std::string& node, Duration lasts) {
    corrupt_[node] = schedule_.now() + lasts;
}

void VirtualNetwork::refuse(const std::string& address, Refusal how, Duration lasts) {
    refused_[address] = {how, schedule_.now() + lasts};
}

bool VirtualNetwork::reset(const std::string& node, bool is_half_open) {
    std::vector<std::pair<std::shared_ptr<VirtualConnection>, Side>> found;
    for (const auto& connection : living()) {
        for (const Side side : {kClient, kServer}) {
            if (connection->is_open(side) && connection->node(side) == node) {
                found.emplace_back(connection, side);
            }
        }
    }
    if (found.empty()) {
        return false;
    }
    const auto& [connection, side] = found[chance_.below(found.size())];
    const Error error{ErrorCode::kUnavailable, "connection reset"};
    connection->fail(side, error);
    connection->mute(side);
    connection->fail(
        side == kClient ? kServer : kClient, error, is_half_open ? kUserTimeout : speed_.delay);
    return true;
}

void VirtualNetwork::lose_node(const std::string& node) {
    for (VirtualPeers* const peers : processes_) {
        if (peers->node_ == node) {
            dark_.insert(peers->address_);
            peers->die(false);
        }
    }
}

void VirtualNetwork::heal() {
    const std::map<Link, std::pair<TimePoint, TimePoint>> cuts = std::exchange(cuts_, {});
    for (const auto& [link, times] : cuts) {
        resume(link.first, link.second);
    }
    slow_.clear();
    corrupt_.clear();
    refused_.clear();
}

bool VirtualNetwork::is_faulty() const {
    const TimePoint now = schedule_.now();
    return std::ranges::any_of(cuts_, [&](const auto& it) { return it.second.second > now; }) ||
           std::ranges::any_of(slow_, [&](const auto& it) { return it.second.second > now; }) ||
           std::ranges::any_of(corrupt_, [&](const auto& it) { return it.second > now; }) ||
           std::ranges::any_of(refused_, [&](const auto& it) { return it.second.until > now; });
}

Bytes VirtualNetwork::payload_bytes(const std::string& node) const {
    const auto found = payload_bytes_.find(node);
    return Bytes{found == payload_bytes_.end() ? 0 : found->second};
}

std::size_t VirtualNetwork::connections() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        connections_, [](const auto& connection) { return !connection.expired(); }));
}

}  // namespace stoker::world
