#include "operator/core/allocation/guarantee.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "operator/core/allocation/max_flow.h"

namespace stoker::control {

namespace {

constexpr std::uint64_t kLevels = 64;

std::uint64_t part_of(Bytes bytes, std::uint64_t level) {
    return bytes.count() / kLevels * level + bytes.count() % kLevels * level / kLevels;
}

// From the source through accounts and nodes to the sink.
class Network {
public:
    Network(std::size_t accounts, const std::vector<std::uint64_t>& node_room)
        : first_node_(1 + accounts),
          flow_(2 + accounts + node_room.size()) {
        for (std::size_t i = 0; i < accounts; ++i) {
            sources_.push_back(flow_.add_edge(0, 1 + i, 0));
        }
        for (std::size_t i = 0; i < node_room.size(); ++i) {
            flow_.add_edge(node(i), first_node_ + node_room.size(), node_room[i]);
        }
    }

    void add_want(std::size_t account, std::size_t at, std::uint64_t bytes) {
        flow_.add_edge(1 + account, node(at), bytes);
    }

    void widen(std::size_t account, std::uint64_t more) { flow_.widen(sources_[account], more); }

    std::uint64_t run() { return flow_.run(); }

    // The part of the account's limit that does not flow.
    [[nodiscard]] std::uint64_t stuck(std::size_t account) const {
        return flow_.room(sources_[account]);
    }

    [[nodiscard]] bool is_full(std::size_t at) const { return !flow_.reaches_sink(node(at)); }

private:
    [[nodiscard]] std::size_t node(std::size_t index) const { return first_node_ + index; }

    std::size_t first_node_;
    MaxFlow flow_;
    std::vector<std::size_t> sources_;  // edges, by account
};

}  // namespace

Guarantee::Guarantee(
    const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept)
    : table_(table),
      lower_(lower) {
    Rooms rooms = nominal_rooms(table, lower, kept);
    node_room_ = std::move(rooms.nodes);
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers;  // by account, node
    std::vector<std::uint64_t> most(table.accounts.size(), 0);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const auto [number, is_new] =
            numbers.emplace(std::pair{claim.account, claim.node}, wants_.size());
        if (is_new) {
            wants_.push_back({claim.account, claim.node, 0});
        }
        want_of_.push_back(number->second);
        Want& want = wants_[number->second];
        want.bytes = (Bytes{want.bytes} + (useful_end(table, claim) - lower[i])).count();
    }
    for (const Want& want : wants_) {
        most[want.account] = (Bytes{most[want.account]} + Bytes{want.bytes}).count();
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        most[i] = std::min(most[i], rooms.accounts[i]);
    }
    rise_together(most, account_uses(table, lower));
}

void Guarantee::rise_together(
    const std::vector<std::uint64_t>& most, const std::vector<Bytes>& used) {
    Network at_once{most.size(), node_room_};
    Network by_levels{most.size(), node_room_};
    for (const Want& want : wants_) {
        at_once.add_want(want.account, want.node, want.bytes);
        by_levels.add_want(want.account, want.node, want.bytes);
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        at_once.widen(i, most[i]);
    }
    at_once.run();
    owed_ = most;
    bool all_fit = true;
    for (std::size_t i = 0; i < most.size(); ++i) {
        all_fit = all_fit && at_once.stuck(i) == 0;
    }
    std::vector<std::uint64_t> sent(most.size(), 0);
    for (std::uint64_t level = 1; level <= kLevels && !all_fit; ++level) {
        for (std::size_t i = 0; i < most.size(); ++i) {
            const Bytes goal = Bytes{part_of(table_.accounts[i].quota.nominal, level)} - used[i];
            const std::uint64_t next = std::max(sent[i], std::min(goal.count(), most[i]));
            by_levels.widen(i, next - sent[i]);
            sent[i] = next;
        }
        by_levels.run();
    }
    for (std::size_t i = 0; i < most.size() && !all_fit; ++i) {
        owed_[i] = sent[i] - by_levels.stuck(i);
    }
}

std::vector<bool> Guarantee::nodes_in_the_way(const ClaimBytes& amounts) const {
    std::vector<std::uint64_t> node_room = node_room_;
    std::vector<std::uint64_t> wanted;
    for (const Want& want : wants_) {
        wanted.push_back(want.bytes);
    }
    std::vector<std::uint64_t> owed = owed_;
    const auto take = [](std::uint64_t& room, Bytes bytes) {
        room -= std::min(room, bytes.count());
    };
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Bytes more = amounts[i] - lower_[i];
        take(node_room[table_.claims[i].node], more);
        take(wanted[want_of_[i]], more);
        take(owed[table_.claims[i].account], more);
    }
    Network network{owed.size(), node_room};
    for (std::size_t i = 0; i < wants_.size(); ++i) {
        network.add_want(wants_[i].account, wants_[i].node, wanted[i]);
    }
    for (std::size_t i = 0; i < owed.size(); ++i) {
        network.widen(i, owed[i]);
    }
    network.run();
    bool fits = true;
    for (std::size_t i = 0; i < owed.size(); ++i) {
        fits = fits && network.stuck(i) == 0;
    }
    std::vector<bool> result;
    for (std::size_t i = 0; i < node_room.size() && !fits; ++i) {
        result.push_back(network.is_full(i));
    }
    return result;
}

}  // namespace stoker::control
