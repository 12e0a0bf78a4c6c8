#include "operator/core/allocation/water_fill.h"

#include <algorithm>
#include <tuple>

#include "operator/core/allocation/exchange.h"
#include "operator/core/allocation/max_flow.h"

namespace stoker::control {

namespace {

constexpr double kWorthStirring = 1.01;

struct Step {
    double value = 0;
    std::uint32_t item = 0;
    std::uint32_t piece = 0;
};

std::vector<Step> by_value(const FillProblem& problem) {
    std::size_t count = 0;
    for (const FillItem& item : problem.items) {
        count += item.pieces.size();
    }
    std::vector<Step> steps;
    steps.reserve(count);  // the largest list of a plan
    for (std::uint32_t item = 0; item < problem.items.size(); ++item) {
        const std::vector<ValuePiece>& pieces = problem.items[item].pieces;
        for (std::uint32_t piece = 0; piece < pieces.size() && pieces[piece].value > 0; ++piece) {
            steps.push_back({pieces[piece].value, item, piece});
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        return std::tie(b.value, a.item, a.piece) < std::tie(a.value, b.item, b.piece);
    });
    return steps;
}

double value_of(const FillProblem& problem, const std::vector<Bytes>& amounts) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        Bytes begin{};
        for (const ValuePiece& piece : problem.items[i].pieces) {
            const Bytes taken = std::min(amounts[i], piece.end) - begin;
            sum += static_cast<double>(taken.count()) * piece.value;
            begin = piece.end;
        }
    }
    return sum;
}

// Fills in the order of value: each item up to FillItem::start, then further while `left` has room.
std::vector<Bytes> fill_greedily(const FillProblem& problem, Rooms& left) {
    std::vector<Bytes> amounts;
    for (const FillItem& item : problem.items) {
        amounts.push_back(item.lower);
    }
    const std::vector<Step> steps = by_value(problem);
    for (const bool to_start : {true, false}) {
        for (const Step& step : steps) {
            const FillItem& item = problem.items[step.item];
            const Bytes piece_end = item.pieces[step.piece].end;
            const Bytes end = to_start ? std::min(piece_end, item.start) : piece_end;
            const Bytes more = left.growth(item.node, item.account, end - amounts[step.item]);
            left.take(item.node, item.account, more);
            amounts[step.item] += more;
        }
    }
    return amounts;
}

// Changes the greedy amounts so that accounts get the most bytes together. Greedy filling may give
// the room on an account's only node to another account's bytes that fit on another node.
void fill_accounts(const FillProblem& problem, const Rooms& left, std::vector<Bytes>& amounts) {
    AccountFlow flow{left.accounts, left.nodes};
    std::vector<std::size_t> edges;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const FillItem& item = problem.items[i];
        const Bytes end = item.pieces.empty() ? Bytes::zero() : item.pieces.back().end;
        edges.push_back(
            flow.add(item.account, item.node, end - amounts[i], amounts[i] - item.lower));
    }
    flow.run();
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        amounts[i] = problem.items[i].lower + flow.flowing(edges[i]);
    }
}

}  // namespace

std::vector<Bytes> water_fill(const FillProblem& problem) {
    Rooms left = problem.rooms;
    std::vector<Bytes> amounts = fill_greedily(problem, left);
    if (problem.fill_accounts) {
        fill_accounts(problem, left, amounts);
    }
    const std::vector<Bytes> greedy = amounts;
    const std::size_t work_left = exchange(problem, problem.work_max, amounts);
    // An exchange that work_max ended may have moved many bytes for little gain: then it is undone.
    const bool is_cut = work_left == 0;
    return is_cut && value_of(problem, amounts) < value_of(problem, greedy) * kWorthStirring
               ? greedy
               : amounts;
}

}  // namespace stoker::control
