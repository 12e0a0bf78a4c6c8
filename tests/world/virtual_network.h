#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/prng.h"
#include "tests/world/virtual_connection.h"

namespace stoker::world {

class VirtualNetwork;

// A certificate of the world: plain text in place of a PEM chain, key or CA bundle.
struct VirtualLeaf {
    std::string authority;
    sidecar::PeerIdentity identity;
    Duration until{};  // Schedule::passed() at its end

    [[nodiscard]] std::string text() const;
    // nullopt: the text is not a VirtualLeaf's.
    static std::optional<VirtualLeaf> parse(std::string_view text);
};

// The network as one process sees it.
class VirtualPeers final : public sidecar::PeerNetwork {
public:
    // `address`: of the process's pod. The arguments outlive it.
    VirtualPeers(VirtualNetwork& network, Program& process, std::string node, std::string address);
    ~VirtualPeers() override;

    Result<std::string> listen(Accept accept) override;
    void set_credentials(sidecar::PeerCredentials credentials) override;
    std::unique_ptr<sidecar::PeerChannel> connect(
        const std::string& address, sidecar::PeerEvents& events) override;

    // The process has died. Its kernel tells the peers, unless the whole node has died.
    void die(bool is_told);

private:
    friend class VirtualNetwork;

    VirtualNetwork& network_;
    Program& process_;
    std::string node_;
    std::string address_;
    Accept accept_;  // empty: the process does not listen
    std::optional<VirtualLeaf> leaf_;
    std::string trust_;
    bool is_dead_ = false;
};

// The network between the sidecars of the world, in virtual time: a link from each node to each
// other. Its random source has a seed of its own. Not thread-safe.
class VirtualNetwork {
public:
    struct Speed {
        Duration delay{};  // of one direction, on average
        double bytes_per_second = 1e9;
    };

    // How a pod's port answers a new connection.
    enum class Refusal : std::uint8_t { kReset, kSilence };

    // A connection to a silent peer ends after this time, a new connection after kHandshake.
    static constexpr Duration kUserTimeout = std::chrono::seconds{30};
    static constexpr Duration kHandshake = std::chrono::seconds{10};

    VirtualNetwork(Schedule& schedule, Speed speed, std::uint64_t seed);
    VirtualNetwork(const VirtualNetwork&) = delete;
    VirtualNetwork& operator=(const VirtualNetwork&) = delete;

    // Nothing arrives over the link in this direction for this time. TCP sends it again afterwards,
    // unless an end has given up before.
    void cut(const std::string& from, const std::string& to, Duration lasts);

    // The node's links, both ways, are `factor` times slower for this time.
    void slow(const std::string& node, double factor, Duration lasts);

    // Payloads from the node arrive with a wrong byte for this time.
    void corrupt(const std::string& node, Duration lasts);

    // New connections to the address fail for this time.
    void refuse(const std::string& address, Refusal how, Duration lasts);

    // Resets a connection of the node: one end learns of it at once. With `is_half_open` the other
    // end learns of it after kUserTimeout, else at once, too. False: the node has no connection.
    bool reset(const std::string& node, bool is_half_open);

    // The node loses power: its kernel does not tell the peers that its processes have ended.
    void lose_node(const std::string& node);

    // Ends every fault.
    void heal();

    // A payload has crossed a connection between these two, in either direction.
    std::function<void(const sidecar::PeerIdentity& client, const sidecar::PeerIdentity& server)>
        on_payload;

    // Whether a fault is active.
    [[nodiscard]] bool is_faulty() const;

    // Bytes of payloads that have arrived at the node.
    [[nodiscard]] Bytes payload_bytes(const std::string& node) const;

    [[nodiscard]] std::size_t connections() const;

private:
    friend class VirtualPeers;

    using Link = std::pair<std::string, std::string>;  // from, to

    struct Refused {
        Refusal how = Refusal::kReset;
        TimePoint until{};
    };

    [[nodiscard]] bool is_cut(const std::string& from, const std::string& to) const;
    Duration transmit(const std::string& from, const std::string& to, std::size_t bytes);
    void deliver(
        const VirtualConnection& connection, std::size_t to, std::vector<std::byte>& payload);
    void resume(const std::string& one, const std::string& other);
    void give_up(const std::string& one, const std::string& other);
    void connect(const std::shared_ptr<VirtualConnection>& connection, const std::string& address);
    void knock(const std::shared_ptr<VirtualConnection>& connection, const std::string& address);
    void accept(const std::shared_ptr<VirtualConnection>& connection, VirtualPeers& server);
    [[nodiscard]] bool is_silent(const std::string& node, const std::string& address) const;
    void leave(const VirtualPeers& peers);
    [[nodiscard]] VirtualPeers* client_of(const VirtualConnection& connection) const;
    [[nodiscard]] VirtualPeers* listener(const std::string& address) const;
    [[nodiscard]] std::optional<Error> refusal(
        const VirtualConnection& connection, const std::string& address) const;
    [[nodiscard]] bool is_valid(const VirtualLeaf& leaf, const std::string& trust) const;
    std::vector<std::shared_ptr<VirtualConnection>> living();

    Schedule& schedule_;
    Speed speed_;
    Prng chance_;
    Wire wire_;
    std::vector<VirtualPeers*> processes_;
    std::vector<std::weak_ptr<VirtualConnection>> connections_;
    std::map<Link, std::pair<TimePoint, TimePoint>> cuts_;  // since, until
    std::map<std::string, std::pair<double, TimePoint>> slow_;
    std::map<std::string, TimePoint> corrupt_;
    std::map<std::string, Refused> refused_;
    std::set<std::string> dark_;  // addresses without a process since their node was lost
    std::map<Link, TimePoint> link_free_;
    std::map<std::string, std::uint64_t> payload_bytes_;
};

}  // namespace stoker::world
