#include "tests/world/peer_groups.h"

#include <utility>

namespace stoker::world {

PeerGroups::PeerGroups(std::string dataset_uid) {
    versions_.push_back({std::move(dataset_uid), 0, {}});
}

bool PeerGroups::see(TimePoint now, const std::vector<control::PeerMember>& leaders) {
    for (const control::PeerMember& leader : leaders) {
        control::PeerMember& member = members_[leader.node];
        if (leader.generation >= member.generation) {
            member = leader;
            seen_at_[leader.node] = now;
        }
    }
    std::erase_if(members_, [&](const auto& entry) {
        const auto seen = seen_at_.find(entry.first);
        return seen == seen_at_.end() || now - seen->second > kKept;
    });
    control::PeerGroup group{newest().dataset_uid, newest().version + 1, {}};
    for (const auto& [node, member] : members_) {
        group.members.push_back(member);
    }
    if (group.members == newest().members) {
        return false;
    }
    versions_.push_back(std::move(group));
    return true;
}

}  // namespace stoker::world
