#include "operator/core/allocation/exchange.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// A flow network: source, accounts (their own bytes directly, lent ones through Rooms::common),
// items (FillItem), nodes, back to the source. Each edge can carry more, which gains the value of
// the item's next piece, or less, which loses the value of its last piece; edges without an item
// are free. A cycle with a positive sum is an exchange that increases the total value.
namespace stoker::control {

namespace {

// Minimum gain of an exchange, relative to the value of the moved bytes; more than the small
// differences between values that should be equal. The sums include it as a cost, so every positive
// cycle is a real gain.
constexpr double kLeastGain = 1e-6;
constexpr double kNoise = 1e-13;  // rounding error, relative to the most valuable byte
constexpr double kSumMax = 64;    // likewise; larger sums would round by more than kNoise
constexpr double kHair = 1e-6;    // relative; pieces with a smaller difference are merged
constexpr std::size_t kSource = 0;
constexpr std::size_t kCommon = 1;
constexpr std::size_t kFirstAccount = 2;
constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

// An edge in one direction.
struct Way {
    Bytes bytes{};     // that can move
    double value = 0;  // per byte
    double gain = 0;   // `value` minus the cost of a move; minus infinity: no bytes can move
};

struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Way more{};
    Way back{};
};

struct Step {
    std::size_t edge = kNobody;
    bool grows = false;
};

// Appends the pieces; merges neighbours of equal value.
void join_equals(const std::vector<ValuePiece>& pieces, std::vector<ValuePiece>& runs) {
    const std::size_t begin = runs.size();
    for (const ValuePiece& piece : pieces) {
        if (runs.size() == begin || piece.value < runs.back().value * (1 - kHair)) {
            runs.push_back(piece);
        }
        runs.back().end = piece.end;
    }
}

class Exchanger {
public:
    Exchanger(const FillProblem& problem, std::size_t work, std::vector<Bytes>& amounts)
        : problem_(problem),
          amounts_(amounts),
          first_node_(kFirstAccount + problem.rooms.accounts.size()),
          gain_(first_node_ + problem.rooms.nodes.size()),
          parent_(gain_.size()),
          work_(work) {
        std::size_t pieces = 0;
        for (const FillItem& item : problem.items) {
            pieces += item.pieces.size();
            most_ = item.pieces.empty() ? most_ : std::max(most_, item.pieces.front().value);
        }
        noise_ = most_ * kNoise;
        edges_.reserve(2 * gain_.size() + problem.items.size());
        first_run_.reserve(problem.items.size() + 1);
        runs_.reserve(pieces);
        add_rooms();
        first_item_ = edges_.size();
        for (std::size_t i = 0; i < problem.items.size(); ++i) {
            const FillItem& item = problem.items[i];
            first_run_.push_back(runs_.size());
            join_equals(item.pieces, runs_);
            add_edge(kFirstAccount + item.account, first_node_ + item.node, {}, {});
        }
        first_run_.push_back(runs_.size());
        for (std::size_t i = 0; i < problem.items.size(); ++i) {
            find_ways(i);
        }
    }

    std::size_t run() {
        while (find_and_apply()) {
        }
        return work_;
    }

private:
    void add_rooms();
    void add_edge(std::size_t from, std::size_t to, Bytes room, Bytes taken);
    void find_ways(std::size_t item);
    bool find_and_apply();
    bool relax_all();
    bool apply_cycles();
    bool apply_cycle(std::size_t at);
    void move(Step step, Bytes bytes);

    [[nodiscard]] Way way_of(Bytes bytes, double value) const {
        const double gain = bytes == Bytes::zero() ? -std::numeric_limits<double>::infinity()
                                                   : value - std::abs(value) * kLeastGain - noise_;
        return {bytes, value, gain};
    }

    bool relax(std::size_t from, std::size_t to, double gain, Step step) {
        const double sum = gain_[from] + gain;
        if (sum <= gain_[to]) {
            return false;
        }
        gain_[to] = sum;
        parent_[to] = step;
        return true;
    }

    [[nodiscard]] std::size_t source_of(Step step) const {
        return step.grows ? edges_[step.edge].from : edges_[step.edge].to;
    }

    const FillProblem& problem_;
    std::vector<Bytes>& amounts_;
    std::size_t first_node_;
    std::size_t first_item_ = 0;
    std::vector<ValuePiece> runs_;        // of all items
    std::vector<std::size_t> first_run_;  // by item, plus the end
    std::vector<Edge> edges_;             // rooms first; items from first_item_ on
    std::vector<double> gain_;            // by vertex: best sum of a path to it, or an older sum
    std::vector<Step> parent_;
    std::size_t work_;
    double most_ = 0;  // highest value of a byte
    double noise_ = 0;
};

void Exchanger::add_edge(std::size_t from, std::size_t to, Bytes room, Bytes taken) {
    edges_.push_back(
        {static_cast<std::uint32_t>(from),
         static_cast<std::uint32_t>(to),
         way_of(room, 0),
         way_of(taken, 0)});
}

void Exchanger::add_rooms() {
    const Rooms& rooms = problem_.rooms;
    std::vector<Bytes> on_nodes(rooms.nodes.size());
    std::vector<Bytes> used(rooms.accounts.size());
    for (std::size_t i = 0; i < amounts_.size(); ++i) {
        const FillItem& item = problem_.items[i];
        on_nodes[item.node] += amounts_[i] - item.lower;
        used[item.account] += amounts_[i] - item.lower;
    }
    Bytes common{};
    for (std::size_t i = 0; i < used.size() && !problem_.fill_accounts; ++i) {
        const Bytes own = std::min(rooms.own[i], rooms.accounts[i]);
        const Bytes own_used = std::min(used[i], own);
        add_edge(kSource, kFirstAccount + i, own - own_used, own_used);
        add_edge(
            kCommon, kFirstAccount + i, rooms.accounts[i] - own - (used[i] - own), used[i] - own);
        common += used[i] - own;
    }
    add_edge(kSource, kCommon, rooms.common - common, common);
    for (std::size_t i = 0; i < on_nodes.size(); ++i) {
        add_edge(first_node_ + i, kSource, rooms.nodes[i] - on_nodes[i], on_nodes[i]);
    }
}

void Exchanger::find_ways(std::size_t item) {
    Edge& edge = edges_[first_item_ + item];
    const Bytes amount = amounts_[item];
    const Bytes lower = problem_.items[item].lower;
    edge.more = way_of({}, 0);
    edge.back = way_of({}, 0);
    Bytes begin{};
    for (std::size_t i = first_run_[item]; i < first_run_[item + 1]; ++i) {
        const ValuePiece& run = runs_[i];
        if (amount > begin && amount > lower && amount <= run.end) {
            edge.back = way_of(amount - std::max(begin, lower), -run.value);
        }
        if (amount < run.end) {
            edge.more = way_of(run.end - amount, run.value);
            break;
        }
        begin = run.end;
    }
}

// One round of Bellman-Ford; returns whether anything changed.
bool Exchanger::relax_all() {
    bool changed = false;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
        const Edge& edge = edges_[i];
        changed |= relax(edge.from, edge.to, edge.more.gain, {i, true});
        changed |= relax(edge.to, edge.from, edge.back.gain, {i, false});
    }
    work_ -= std::min(work_, problem_.items.size() + gain_.size());
    return changed;
}

// Keeps the sums from one exchange to the next: any starting values reveal every positive cycle,
// and an exchange changes few of them.
bool Exchanger::find_and_apply() {
    if (std::ranges::any_of(gain_, [&](double sum) { return sum > kSumMax * most_; })) {
        std::fill(gain_.begin(), gain_.end(), 0.0);
    }
    std::fill(parent_.begin(), parent_.end(), Step{});
    while (work_ > 0 && relax_all()) {
        if (apply_cycles()) {
            return true;
        }
    }
    return false;
}

// Applies every cycle among the parents; the cycles share no vertex.
bool Exchanger::apply_cycles() {
    std::vector<std::size_t> seen(parent_.size(), 0);
    bool applied = false;
    for (std::size_t start = 0; start < parent_.size(); ++start) {
        std::size_t at = start;
        while (at != kNobody && seen[at] == 0) {
            seen[at] = start + 1;
            at = parent_[at].edge == kNobody ? kNobody : source_of(parent_[at]);
        }
        if (at != kNobody && seen[at] == start + 1) {
            applied |= apply_cycle(at);
        }
    }
    return applied;
}

bool Exchanger::apply_cycle(std::size_t at) {
    Bytes most = Bytes::unlimited();
    double gain = 0;
    double least_gain = noise_;
    std::vector<Step> steps;
    std::size_t to = at;
    do {
        const Step step = parent_[to];
        const Way& way = step.grows ? edges_[step.edge].more : edges_[step.edge].back;
        most = std::min(most, way.bytes);
        gain += way.value;
        least_gain = std::max(least_gain, std::abs(way.value) * kLeastGain);
        steps.push_back(step);
        to = source_of(step);
    } while (to != at);
    if (most == Bytes::zero() || most.is_unlimited() || gain <= least_gain) {
        return false;
    }
    for (const Step step : steps) {
        move(step, most);
    }
    return true;
}

void Exchanger::move(Step step, Bytes bytes) {
    if (step.edge >= first_item_) {
        Bytes& amount = amounts_[step.edge - first_item_];
        amount = step.grows ? amount + bytes : amount - bytes;
        find_ways(step.edge - first_item_);
        return;
    }
    Edge& edge = edges_[step.edge];
    Way& used = step.grows ? edge.more : edge.back;
    Way& freed = step.grows ? edge.back : edge.more;
    used = way_of(used.bytes - bytes, 0);
    freed = way_of(freed.bytes + bytes, 0);
}

}  // namespace

std::size_t exchange(const FillProblem& problem, std::size_t work, std::vector<Bytes>& amounts) {
    return Exchanger{problem, work, amounts}.run();
}

}  // namespace stoker::control
