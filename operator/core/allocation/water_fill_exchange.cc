#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "operator/core/allocation/water_fill_state.h"

// Bytes flow from a source, some of them through the common room, to the accounts, their items, and
// through the items' nodes back to the source. An item that grows is an edge from its account to
// its node that gains its value, one that shrinks an edge back that loses it; room is an edge that
// costs nothing. A cycle with a positive sum is an exchange that pays.
namespace stoker::control {

namespace {

// Share of the value of the bytes that move: less is not worth an exchange, nor is the hair between
// equals. What a move costs like that counts in the sums, so that every cycle among them pays.
constexpr double kLeastGain = 1e-6;
constexpr double kNoise = 1e-13;  // of the most valuable byte
constexpr double kSumMax = 64;    // likewise: greater sums would round by more than the noise
constexpr std::size_t kSource = 0;
constexpr std::size_t kCommon = 1;
constexpr std::size_t kFirstAccount = 2;
constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

struct Edge {
    std::size_t from = kNobody;
    std::size_t item = kNobody;  // kNobody: room
    bool grows = false;
};

class Exchanger {
public:
    Exchanger(FillState& state, std::size_t work)
        : state_(state),
          problem_(state.problem()),
          first_node_(kFirstAccount + problem_.account_room.size()),
          gain_(first_node_ + problem_.node_room.size()),
          parent_(gain_.size()),
          work_(work) {
        for (const FillItem& item : problem_.items) {
            most_ = item.pieces.empty() ? most_ : std::max(most_, item.pieces.front().value);
        }
        noise_ = most_ * kNoise;
    }

    std::size_t run() {
        while (find_and_apply()) {
        }
        return work_;
    }

private:
    bool find_and_apply();
    bool relax_all();
    void relax(std::size_t from, std::size_t to, double gain, std::size_t item, bool grows);
    void relax_rooms();
    bool apply_cycles();
    bool apply_cycle(std::size_t at);
    [[nodiscard]] std::uint64_t capacity(std::size_t to, const Edge& edge) const;

    FillState& state_;
    const FillProblem& problem_;
    std::size_t first_node_;
    std::vector<double> gain_;  // best sum on a path that ends here, or did before an exchange
    std::vector<Edge> parent_;
    std::size_t work_;
    double most_ = 0;  // the most valuable byte
    double noise_ = 0;
    bool changed_ = false;
};

void Exchanger::relax(std::size_t from, std::size_t to, double gain, std::size_t item, bool grows) {
    const double sum = gain_[from] + gain - std::abs(gain) * kLeastGain - noise_;
    if (sum > gain_[to]) {
        gain_[to] = sum;
        parent_[to] = {from, item, grows};
        changed_ = true;
    }
}

void Exchanger::relax_rooms() {
    if (state_.common_room() > 0) {
        relax(kSource, kCommon, 0, kNobody, true);
    }
    relax(kCommon, kSource, 0, kNobody, false);
    for (std::size_t i = 0; i < problem_.account_room.size() && !problem_.fill_accounts; ++i) {
        const std::size_t account = kFirstAccount + i;
        if (state_.own_taken(i) > 0) {
            relax(account, kSource, 0, kNobody, false);
        }
        if (state_.common_taken(i) > 0) {
            relax(account, kCommon, 0, kNobody, false);
        }
        if (state_.account_room(i) > 0) {
            relax(state_.own_room(i) > 0 ? kSource : kCommon, account, 0, kNobody, true);
        }
    }
    for (std::size_t i = 0; i < problem_.node_room.size(); ++i) {
        if (state_.node_room(i) > 0) {
            relax(first_node_ + i, kSource, 0, kNobody, true);
        }
        relax(kSource, first_node_ + i, 0, kNobody, false);
    }
}

// One round of Bellman and Ford; whether anything changed.
bool Exchanger::relax_all() {
    changed_ = false;
    relax_rooms();
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
        const FillItem& item = problem_.items[i];
        const std::size_t account = kFirstAccount + item.account;
        const std::size_t node = first_node_ + item.node;
        if (const FillPiece& next = state_.next_piece(i); next.bytes > 0) {
            relax(account, node, next.value, i, true);
        }
        if (const FillPiece& last = state_.last_piece(i); last.bytes > 0) {
            relax(node, account, -last.value, i, false);
        }
    }
    work_ -= std::min(work_, problem_.items.size() + gain_.size());
    return changed_;
}

// The sums stay from one exchange to the next: whatever they start from, no cycle stays hidden, and
// an exchange changes few of them.
bool Exchanger::find_and_apply() {
    if (std::ranges::any_of(gain_, [&](double sum) { return sum > kSumMax * most_; })) {
        std::fill(gain_.begin(), gain_.end(), 0.0);
    }
    std::fill(parent_.begin(), parent_.end(), Edge{});
    while (work_ > 0 && relax_all()) {
        if (apply_cycles()) {
            return true;
        }
    }
    return false;
}

// Every cycle among the parents; they have no vertex in common.
bool Exchanger::apply_cycles() {
    std::vector<std::size_t> seen(parent_.size(), 0);
    bool applied = false;
    for (std::size_t start = 0; start < parent_.size(); ++start) {
        std::size_t at = start;
        while (at != kNobody && seen[at] == 0) {
            seen[at] = start + 1;
            at = parent_[at].from;
        }
        if (at != kNobody && seen[at] == start + 1) {
            applied |= apply_cycle(at);
        }
    }
    return applied;
}

std::uint64_t Exchanger::capacity(std::size_t to, const Edge& edge) const {
    if (edge.item != kNobody) {
        return edge.grows ? state_.next_piece(edge.item).bytes : state_.last_piece(edge.item).bytes;
    }
    const bool from_account = edge.from >= kFirstAccount && edge.from < first_node_;
    if (!edge.grows && from_account) {
        const std::size_t account = edge.from - kFirstAccount;
        return to == kCommon ? state_.common_taken(account) : state_.own_taken(account);
    }
    if (!edge.grows) {
        return FillProblem::kNoLimit;  // as much as the items of the cycle free
    }
    if (to == kCommon) {
        return state_.common_room();
    }
    if (to == kSource) {
        return state_.node_room(edge.from - first_node_);
    }
    const std::size_t account = to - kFirstAccount;
    return edge.from == kCommon ? state_.account_room(account)
                                : std::min(state_.account_room(account), state_.own_room(account));
}

bool Exchanger::apply_cycle(std::size_t at) {
    std::uint64_t most = FillProblem::kNoLimit;
    double gain = 0;
    double least_gain = noise_;
    std::vector<Edge> items;
    std::size_t to = at;
    do {
        const Edge& edge = parent_[to];
        most = std::min(most, capacity(to, edge));
        if (edge.item != kNobody) {
            items.push_back(edge);
            const double value = edge.grows ? state_.next_piece(edge.item).value
                                            : -state_.last_piece(edge.item).value;
            gain += value;
            least_gain = std::max(least_gain, std::abs(value) * kLeastGain);
        }
        to = edge.from;
    } while (to != at);
    if (most == 0 || most == FillProblem::kNoLimit || gain <= least_gain) {
        return false;
    }
    for (const Edge& edge : items) {
        if (!edge.grows) {
            state_.remove(edge.item, most);
        }
    }
    for (const Edge& edge : items) {
        if (edge.grows) {
            state_.add(edge.item, most);
        }
    }
    return true;
}

}  // namespace

std::size_t exchange(FillState& state, std::size_t work) {
    return Exchanger{state, work}.run();
}

}  // namespace stoker::control
