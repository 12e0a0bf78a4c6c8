#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/runtime/event_loop.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::test {

struct MemoryPipe;

// Connects the MemoryNetworks of several sidecars, and injects faults between them. Thread-safe:
// each network may have a loop and a thread of its own. Must outlive its networks.
class MemorySwitch {
public:
    // Breaks the node's connections and refuses new ones, until heal().
    void cut(const std::string& node);

    // Frames that the node sends are kept until heal().
    void stall(const std::string& node);

    // Flips a bit in every payload that the node sends, until heal().
    void corrupt(const std::string& node);
    void heal(const std::string& node);

    // Number of payloads that the node has sent so far.
    [[nodiscard]] std::uint64_t payloads_of(const std::string& node) const;

private:
    friend class MemoryNetwork;

    struct Node {
        EventLoop* loop = nullptr;  // nullptr: does not listen
        sidecar::PeerNetwork::Accept accept;
        sidecar::PeerIdentity identity;
        bool is_cut = false;
        bool is_stalled = false;
        bool is_corrupt = false;
        std::uint64_t payloads = 0;
    };

    mutable std::recursive_mutex mutex_;
    std::map<std::string, Node> nodes_;
    std::vector<std::weak_ptr<MemoryPipe>> pipes_;
};

// A PeerNetwork in memory. The address of a node is "NODE:1". Events come in tasks of the
// receiver's loop. Destroy it before its loop.
class MemoryNetwork final : public sidecar::PeerNetwork {
public:
    // `identity`: what this node's certificate proves. No credentials are needed.
    MemoryNetwork(
        MemorySwitch& hub, EventLoop& loop, std::string node, sidecar::PeerIdentity identity);
    ~MemoryNetwork() override;

    Result<std::string> listen(Accept accept) override;

    void set_credentials(sidecar::PeerCredentials /*credentials*/) override {}

    std::unique_ptr<sidecar::PeerChannel> connect(
        const std::string& address, sidecar::PeerEvents& events) override;

private:
    MemorySwitch& hub_;
    EventLoop& loop_;
    const std::string node_;
};

}  // namespace stoker::test
