#include "operator/core/allocation/water_fill.h"

#include <algorithm>
#include <tuple>

#include "operator/core/allocation/max_flow.h"
#include "operator/core/allocation/water_fill_state.h"

namespace stoker::control {

namespace {

constexpr double kWorthStirring = 1.01;

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

// Each item up to where it starts, or as far as there is room.
void fill_in_order(const std::vector<Step>& steps, bool to_start, FillState& state) {
    for (const Step& step : steps) {
        const std::uint64_t start = state.problem().items[step.item].start;
        const std::uint64_t end = to_start ? std::min(step.end, start) : step.end;
        const std::uint64_t amount = state.amount(step.item);
        if (amount < end) {
            if (const std::uint64_t more = state.growth(step.item, end - amount); more > 0) {
                state.add(step.item, more);
            }
        }
    }
}

// Greed may have filled the only node that one account can use with bytes that another could have
// elsewhere.
void fill_accounts(FillState& state) {
    const FillProblem& problem = state.problem();
    const std::size_t first_node = 1 + problem.account_room.size();
    const std::size_t sink = first_node + problem.node_room.size();
    MaxFlow flow{sink + 1};
    std::vector<std::size_t> edges;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        const FillItem& item = problem.items[i];
        std::uint64_t end = 0;
        for (const FillPiece& piece : item.pieces) {
            end += piece.bytes;
        }
        const std::uint64_t amount = state.amount(i);
        edges.push_back(flow.add_edge(
            1 + item.account,
            first_node + item.node,
            end - std::min(end, amount),
            amount - item.lower));
    }
    for (std::size_t i = 0; i < problem.account_room.size(); ++i) {
        flow.add_edge(0, 1 + i, state.account_room(i));
    }
    for (std::size_t i = 0; i < problem.node_room.size(); ++i) {
        flow.add_edge(first_node + i, sink, state.node_room(i));
    }
    flow.run();
    std::vector<std::uint64_t> amounts;
    for (std::size_t i = 0; i < edges.size(); ++i) {
        amounts.push_back(problem.items[i].lower + flow.room(edges[i] + 1));
        const std::uint64_t amount = state.amount(i);
        state.remove(i, amount - std::min(amount, amounts[i]));
    }
    for (std::size_t i = 0; i < edges.size(); ++i) {
        state.add(i, amounts[i] - state.amount(i));
    }
}

}  // namespace

std::vector<std::uint64_t> water_fill(const FillProblem& problem) {
    FillState state{problem};
    const std::vector<Step> steps = by_value(problem);
    fill_in_order(steps, true, state);
    fill_in_order(steps, false, state);
    if (problem.fill_accounts) {
        fill_accounts(state);
    }
    const FillState greedy = state;
    const std::size_t left = exchange(state, problem.work_max);
    // Cut short, it may have stirred a lot for little.
    return left == 0 && value_of(state) < value_of(greedy) * kWorthStirring ? greedy.amounts()
                                                                            : state.amounts();
}

}  // namespace stoker::control
