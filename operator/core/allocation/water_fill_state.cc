#include "operator/core/allocation/water_fill_state.h"

namespace stoker::control {

namespace {

constexpr double kHair = 1e-6;  // relative
constexpr std::uint64_t kNoLimit = FillProblem::kNoLimit;

void give_back(std::uint64_t& room, std::uint64_t bytes) {
    room = room == kNoLimit ? kNoLimit : room + bytes;
}

void take(std::uint64_t& room, std::uint64_t bytes) {
    room = room == kNoLimit ? kNoLimit : room - bytes;
}

}  // namespace

FillState::FillState(const FillProblem& problem)
    : problem_(&problem),
      next_(problem.items.size()),
      last_(problem.items.size()),
      node_room_(problem.node_room),
      account_room_(problem.account_room),
      own_room_(problem.account_own),
      common_taken_(problem.account_room.size(), 0),
      common_room_(problem.common_room) {
    for (std::size_t item = 0; item < problem.items.size(); ++item) {
        amounts_.push_back(problem.items[item].lower);
        find_pieces(item);
    }
}

std::uint64_t FillState::growth(std::size_t item, std::uint64_t wanted) const {
    const FillItem& it = problem_->items[item];
    const std::uint64_t own = own_room_[it.account];
    const std::uint64_t paid = common_room_ > kNoLimit - own ? kNoLimit : own + common_room_;
    return std::min({wanted, node_room_[it.node], account_room_[it.account], paid});
}

void FillState::add(std::size_t item, std::uint64_t bytes) {
    const FillItem& it = problem_->items[item];
    amounts_[item] += bytes;
    take(node_room_[it.node], bytes);
    take(account_room_[it.account], bytes);
    const std::uint64_t own = std::min(own_room_[it.account], bytes);
    own_room_[it.account] -= own;
    common_taken_[it.account] += bytes - own;
    take(common_room_, bytes - own);
    find_pieces(item);
}

void FillState::remove(std::size_t item, std::uint64_t bytes) {
    const FillItem& it = problem_->items[item];
    amounts_[item] -= bytes;
    give_back(node_room_[it.node], bytes);
    give_back(account_room_[it.account], bytes);
    const std::uint64_t common = std::min(common_taken_[it.account], bytes);
    common_taken_[it.account] -= common;
    give_back(common_room_, common);
    own_room_[it.account] += bytes - common;
    find_pieces(item);
}

// Neighbours that differ by a hair are one piece here.
void FillState::find_pieces(std::size_t item) {
    const FillItem& it = problem_->items[item];
    const std::uint64_t amount = amounts_[item];
    next_[item] = {};
    last_[item] = {};
    std::uint64_t begin = 0;
    std::uint64_t run_begin = 0;  // of the equal pieces up to here
    double run_value = 0;
    for (const FillPiece& piece : it.pieces) {
        const std::uint64_t end = begin + piece.bytes;
        FillPiece& next = next_[item];
        if (begin == 0 || piece.value < run_value * (1 - kHair)) {
            run_begin = begin;
            run_value = piece.value;
        }
        if (amount > begin && amount <= end && amount > it.lower) {
            last_[item] = {amount - std::max(run_begin, it.lower), piece.value};
        }
        if (amount >= begin && amount < end) {
            next = {end - amount, piece.value};
        } else if (next.bytes > 0) {
            if (piece.value < next.value * (1 - kHair)) {
                break;
            }
            next = {next.bytes + piece.bytes, piece.value};
        }
        begin = end;
    }
}

}  // namespace stoker::control
