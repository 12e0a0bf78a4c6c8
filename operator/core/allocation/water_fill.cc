#include "operator/core/allocation/water_fill.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "operator/core/allocation/fill_exactly.h"
#include "operator/core/allocation/water_fill_state.h"

namespace stoker::control {

namespace {

constexpr double kWorthStirring = 1.01;
constexpr double kWorthExact = 1 + 1e-6;
constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

struct Step {
    double value = 0;
    std::uint32_t item = 0;
    std::uint64_t end = 0;  // of the piece, from the item's zero
};

std::vector<Step> by_value(const FillProblem& problem) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        std::uint64_t end = 0;
        for (const FillPiece& piece : problem.items[i].pieces) {
            end += piece.bytes;
            if (piece.value > 0) {
                steps.push_back({piece.value, static_cast<std::uint32_t>(i), end});
            }
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        return std::tie(b.value, a.item, a.end) < std::tie(a.value, b.item, b.end);
    });
    return steps;
}

double value_of(const FillState& state) {
    double sum = 0;
    for (std::size_t i = 0; i < state.problem().items.size(); ++i) {
        std::uint64_t left = state.amount(i);
        for (const FillPiece& piece : state.problem().items[i].pieces) {
            const std::uint64_t taken = std::min(left, piece.bytes);
            sum += static_cast<double>(taken) * piece.value;
            left -= taken;
        }
    }
    return sum;
}

class Filler {
public:
    explicit Filler(const FillProblem& problem)
        : problem_(problem),
          steps_(by_value(problem)),
          state_(problem),
          work_(problem.work_max),
          useful_(problem.items.size(), 0) {
        for (std::size_t i = 0; i < problem.items.size(); ++i) {
            if (!state_.is_simple(i)) {
                shared_.push_back(i);
            }
        }
        for (const Step& step : steps_) {
            useful_[step.item] = std::max(useful_[step.item], step.end);
        }
    }

    std::vector<std::uint64_t> run() {
        fill_in_order(true, kNobody);
        fill_in_order(false, kNobody);
        const FillState greedy = state_;
        work_ = exchange(state_, work_);
        // Cut short, it may have stirred a lot for little.
        if (work_ == 0 && value_of(state_) < value_of(greedy) * kWorthStirring) {
            state_ = greedy;
        }
        while (improve_shared()) {
        }
        if (!shared_.empty()) {
            take_exact();
        }
        return state_.amounts();
    }

private:
    void fill_in_order(bool to_start, std::size_t not_item);
    bool improve_shared();
    void take_exact();
    bool try_growing(std::size_t item, std::uint64_t divisor, std::size_t instead_of);
    bool try_shrinking(std::size_t item, std::uint64_t divisor);
    [[nodiscard]] std::uint64_t step_of(
        std::size_t item, std::uint64_t bytes, std::uint64_t divisor) const;
    template <class Move>
    bool try_move(std::size_t item, Move move);
    bool make_room(std::size_t item, std::uint64_t bytes);
    [[nodiscard]] std::size_t cheapest(std::size_t not_item, const auto& is_in_the_way) const;

    const FillProblem& problem_;
    std::vector<Step> steps_;
    FillState state_;
    std::size_t work_;
    std::vector<std::size_t> shared_;    // items that are not simple
    std::vector<std::uint64_t> useful_;  // of each item, bytes that are worth something
};

void Filler::fill_in_order(bool to_start, std::size_t not_item) {
    for (const Step& step : steps_) {
        if (step.item == not_item) {
            continue;
        }
        const std::uint64_t start = problem_.items[step.item].start;
        const std::uint64_t end = to_start ? std::min(step.end, start) : step.end;
        const std::uint64_t amount = state_.amount(step.item);
        if (amount < end) {
            if (const std::uint64_t more = state_.growth(step.item, end - amount); more > 0) {
                state_.add(step.item, more);
            }
        }
    }
}

// The item with the least valuable last bytes among those in the way.
std::size_t Filler::cheapest(std::size_t not_item, const auto& is_in_the_way) const {
    std::size_t found = kNobody;
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
        const bool has_some =
            i != not_item && state_.last_piece(i).bytes >= problem_.items[i].parts;
        if (has_some && is_in_the_way(problem_.items[i]) &&
            (found == kNobody || state_.last_piece(i).value < state_.last_piece(found).value)) {
            found = i;
        }
    }
    return found;
}

// Takes the least valuable bytes away until the item can grow by so many; false: it cannot.
bool Filler::make_room(std::size_t item, std::uint64_t bytes) {
    const FillItem& it = problem_.items[item];
    while (state_.growth(item, bytes) < bytes) {
        work_ -= std::min(work_, problem_.items.size());
        const bool node_full = state_.node_room(it.node) < bytes;
        const std::size_t victim = cheapest(item, [&](const FillItem& other) {
            if (node_full) {
                return other.node == it.node;
            }
            return std::any_of(
                other.accounts.begin(), other.accounts.end(), [&](std::uint32_t account) {
                    const bool ours = std::find(it.accounts.begin(), it.accounts.end(), account) !=
                                      it.accounts.end();
                    return (ours && state_.account_room(account) < bytes / it.parts) ||
                           state_.common_room() < bytes;
                });
        });
        if (victim == kNobody || work_ == 0) {
            return false;
        }
        const std::uint64_t parts = problem_.items[victim].parts;
        const std::uint64_t most = state_.last_piece(victim).bytes;
        const std::uint64_t part = std::min(most, (bytes / it.parts + 1) * parts);
        state_.remove(victim, std::max(part - part % parts, parts));
    }
    return true;
}

template <class Move>
bool Filler::try_move(std::size_t item, Move move) {
    const FillState before = state_;
    const double value = value_of(before);
    if (move()) {
        fill_in_order(false, item);
        work_ = exchange(state_, work_);
        fill_in_order(false, kNobody);
        work_ -= std::min(work_, steps_.size());
        if (value_of(state_) > value * (1 + 1e-9)) {
            return true;
        }
    }
    state_ = before;
    return false;
}

// About a part of `bytes`, of which the accounts are charged whole bytes; 0 if there are too few.
std::uint64_t Filler::step_of(std::size_t item, std::uint64_t bytes, std::uint64_t divisor) const {
    const std::uint64_t parts = problem_.items[item].parts;
    const std::uint64_t step = bytes / divisor;
    return std::min(bytes - bytes % parts, step - step % parts + parts);
}

bool Filler::try_growing(std::size_t item, std::uint64_t divisor, std::size_t instead_of) {
    return try_move(item, [&] {
        if (instead_of != kNobody) {
            const std::uint64_t given = state_.amount(instead_of);
            state_.remove(
                instead_of, step_of(instead_of, given - problem_.items[instead_of].lower, 1));
        }
        const std::uint64_t amount = state_.amount(item);
        const std::uint64_t more =
            step_of(item, useful_[item] - std::min(useful_[item], amount), divisor);
        const bool fits = more > 0 && make_room(item, more);
        state_.add(item, fits ? more : 0);
        return fits;
    });
}

bool Filler::try_shrinking(std::size_t item, std::uint64_t divisor) {
    return try_move(item, [&] {
        const std::uint64_t less =
            step_of(item, state_.amount(item) - problem_.items[item].lower, divisor);
        state_.remove(item, less);
        return less > 0;
    });
}

// Items that several accounts share are no flow: one after the other is grown and shrunk by large
// and small steps, also one instead of another; everybody else follows, and what is better stays.
bool Filler::improve_shared() {
    bool better = false;
    for (const std::size_t item : shared_) {
        for (const std::uint64_t divisor : {1, 4, 16, 64}) {
            better |= work_ > 0 && try_growing(item, divisor, kNobody);
            better |= work_ > 0 && try_shrinking(item, divisor);
        }
    }
    for (const std::size_t item : shared_) {
        for (const std::size_t other : shared_) {
            for (const std::uint64_t divisor : {1, 4}) {
                better |=
                    item != other && work_ > 0 && !better && try_growing(item, divisor, other);
            }
        }
    }
    return better;
}

// What the search has missed, where the problem is small enough to be solved exactly. Of equals the
// found one stays: it is nearer to where the bytes are.
void Filler::take_exact() {
    const std::optional<std::vector<std::uint64_t>> exact = fill_exactly(problem_);
    if (!exact) {
        return;
    }
    const FillState found = std::exchange(state_, FillState{problem_});
    for (std::size_t i = 0; i < exact->size(); ++i) {
        state_.add(i, state_.growth(i, (*exact)[i] - state_.amount(i)));
    }
    fill_in_order(false, kNobody);
    if (value_of(state_) < value_of(found) * kWorthExact) {
        state_ = found;
    }
}

}  // namespace

std::vector<std::uint64_t> water_fill(const FillProblem& problem) {
    return Filler{problem}.run();
}

}  // namespace stoker::control
