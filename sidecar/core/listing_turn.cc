#include "sidecar/core/listing_turn.h"

#include <algorithm>
#include <utility>

#include "sidecar/core/placement.h"

namespace stoker::sidecar {

ListingTurn::ListingTurn(std::string_view dataset_uid, std::string self, TimePoint now)
    : dataset_hash_(placement_hash(dataset_uid)),
      self_(rank_of(self)),
      begun_at_(now) {}

ListingTurn::Rank ListingTurn::rank_of(const std::string& node) const {
    const std::string both = std::to_string(dataset_hash_) + "/" + node;
    return {placement_hash(both), node};
}

void ListingTurn::set_members(const std::vector<Member>& members) {
    has_group_ = std::ranges::count(members, self_.node, &Member::node) > 0;
    auto before = std::exchange(peers_, {});
    for (const Member& member : members) {
        const Rank rank = rank_of(member.node);
        if (rank == self_) {
            continue;
        }
        Peer& peer = peers_[rank];
        peer.generation = member.generation;
        const auto known = before.find(rank);
        if (known != before.end() && known->second.generation == member.generation) {
            peer = known->second;
        }
    }
}

void ListingTurn::note(const std::string& node, Said said, std::uint64_t progress, TimePoint now) {
    const auto found = peers_.find(rank_of(node));
    if (found == peers_.end()) {
        return;
    }
    Peer& peer = found->second;
    if (peer.said != said || peer.progress != progress) {
        peer.said = said;
        peer.progress = progress;
        peer.moved_at = now;
    }
}

// Whether the member may still provide the manifest.
bool ListingTurn::is_hopeful(Peer& peer, TimePoint now) const {
    peer.asked_at = peer.asked_at.value_or(now);
    switch (peer.said) {
        case Said::kNothing:
            return now - *peer.asked_at < kAnswerMax;
        case Said::kIdle:
            return now - peer.moved_at < kIdleMax;
        case Said::kListing:
        case Said::kTaking:
            return now - peer.moved_at < kStillMax;
        case Said::kHas:
            return true;
        case Said::kFailed:
            return false;
    }
    return false;
}

ListingTurn::Step ListingTurn::step(TimePoint now) {
    if (now - begun_at_ >= (has_group_ ? kAllMax : kGroupMax)) {
        return {Action::kList, {}};
    }
    if (!has_group_) {
        return {};
    }
    for (auto& [rank, peer] : peers_) {
        if (rank > self_ && is_hopeful(peer, now)) {
            return {peer.said == Said::kHas ? Action::kTake : Action::kWait, {rank.node}};
        }
    }
    return ask_before_listing(now);
}

// This node is the first live member of the group: it lists, unless another member has the manifest
// or may have it, because it is listing or has not answered yet.
ListingTurn::Step ListingTurn::ask_before_listing(TimePoint now) {
    Step step{Action::kList, {}};
    for (auto& [rank, peer] : peers_) {
        if (!is_hopeful(peer, now)) {
            continue;
        }
        if (peer.said == Said::kHas) {
            return {Action::kTake, {rank.node}};
        }
        if (peer.said == Said::kNothing || peer.said == Said::kListing) {
            step.action = Action::kWait;
            step.asked.push_back(rank.node);
        }
    }
    return step;
}

}  // namespace stoker::sidecar
