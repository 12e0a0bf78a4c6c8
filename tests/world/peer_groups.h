#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "wire/control/orders.h"

namespace stoker::world {

// The group of peers that the operator would send: one leader a node, from their reports. A leader
// that is not seen any more stays for kKept, unless another one leads on its node. Not thread-safe.
class PeerGroups {
public:
    static constexpr Duration kKept = std::chrono::seconds{30};

    explicit PeerGroups(std::string dataset_uid);

    // The leaders that report a peer address now. True: the group has another version.
    bool see(TimePoint now, const std::vector<control::PeerMember>& leaders);

    // The node's pods are gone: its leader leaves with the next see().
    void forget(const std::string& node) { seen_at_.erase(node); }

    [[nodiscard]] const control::PeerGroup& newest() const { return versions_.back(); }

    // All groups so far; the first is empty and has version 0.
    [[nodiscard]] const std::vector<control::PeerGroup>& versions() const { return versions_; }

private:
    std::map<std::string, control::PeerMember> members_;  // by node
    std::map<std::string, TimePoint> seen_at_;
    std::vector<control::PeerGroup> versions_;
};

}  // namespace stoker::world
