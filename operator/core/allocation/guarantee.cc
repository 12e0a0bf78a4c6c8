#include "operator/core/allocation/guarantee.h"

#include <algorithm>
#include <map>
#include <utility>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/max_flow.h"

namespace stoker::control {

namespace {

constexpr std::uint64_t kLevels = 64;

Bytes part_of(Bytes bytes, std::uint64_t level) {
    return Bytes{bytes.count() / kLevels * level + bytes.count() % kLevels * level / kLevels};
}

}  // namespace

Guarantee::Guarantee(
    const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept)
    : table_(table),
      lower_(lower) {
    const Rooms rooms = nominal_rooms(table, lower, kept);
    node_room_ = rooms.nodes;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers;  // by account, node
    std::vector<Bytes> most(table.accounts.size());
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const auto [number, is_new] =
            numbers.emplace(std::pair{claim.account, claim.node}, wants_.size());
        if (is_new) {
            wants_.push_back({claim.account, claim.node});
        }
        want_of_.push_back(number->second);
        const Bytes bytes = useful_end(table, claim) - lower[i];
        wants_[number->second].bytes += bytes;
        most[claim.account] += bytes;
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        most[i] = std::min(most[i], rooms.accounts[i]);
    }
    rise_together(most, account_uses(table, lower));
}

void Guarantee::rise_together(const std::vector<Bytes>& most, const std::vector<Bytes>& used) {
    AccountFlow flow{std::vector<Bytes>(most.size()), node_room_};
    for (const Want& want : wants_) {
        flow.add(want.account, want.node, want.bytes);
    }
    owed_.resize(most.size());
    for (std::uint64_t level = 1; level <= kLevels; ++level) {
        for (std::size_t i = 0; i < most.size(); ++i) {
            const Bytes goal = part_of(table_.accounts[i].quota.nominal, level) - used[i];
            const Bytes next = std::max(owed_[i], std::min(goal, most[i]));
            flow.widen(i, next - owed_[i]);
            owed_[i] = next;
        }
        flow.run();
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        owed_[i] -= flow.stuck(i);
    }
}

std::vector<bool> Guarantee::nodes_in_the_way(const ClaimBytes& amounts) const {
    std::vector<Bytes> node_room = node_room_;
    std::vector<Want> wants = wants_;
    std::vector<Bytes> owed = owed_;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Bytes more = amounts[i] - lower_[i];
        node_room[table_.claims[i].node] -= more;
        wants[want_of_[i]].bytes -= more;
        owed[table_.claims[i].account] -= more;
    }
    AccountFlow flow{owed, node_room};
    for (const Want& want : wants) {
        flow.add(want.account, want.node, want.bytes);
    }
    flow.run();
    std::vector<bool> result;
    for (std::size_t i = 0; i < node_room.size() && !flow.is_whole(); ++i) {
        result.push_back(flow.is_full(i));
    }
    return result;
}

}  // namespace stoker::control
