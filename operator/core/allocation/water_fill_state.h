#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

// A feasible division of a FillProblem, and what room it leaves. Private to water_fill.
class FillState {
public:
    explicit FillState(const FillProblem& problem);

    // The most that the item can grow by now, at most `wanted`.
    [[nodiscard]] std::uint64_t growth(std::size_t item, std::uint64_t wanted) const;

    // Takes room without asking: growth() was asked, or a cycle frees as much.
    void add(std::size_t item, std::uint64_t bytes);
    void remove(std::size_t item, std::uint64_t bytes);

    // Bytes left of the piece that the item is in, and its value; 0 bytes at the end.
    [[nodiscard]] const FillPiece& next_piece(std::size_t item) const { return next_[item]; }

    // Bytes that were given of the last piece beyond `lower`, and their value; 0 bytes at `lower`.
    [[nodiscard]] const FillPiece& last_piece(std::size_t item) const { return last_[item]; }

    [[nodiscard]] std::uint64_t amount(std::size_t item) const { return amounts_[item]; }

    [[nodiscard]] const std::vector<std::uint64_t>& amounts() const { return amounts_; }

    [[nodiscard]] std::uint64_t node_room(std::size_t node) const { return node_room_[node]; }

    [[nodiscard]] std::uint64_t account_room(std::size_t account) const {
        return account_room_[account];
    }

    // The part of it that is not common room.
    [[nodiscard]] std::uint64_t own_room(std::size_t account) const { return own_room_[account]; }

    // What the account has taken of its own, and out of the common room.
    [[nodiscard]] std::uint64_t own_taken(std::size_t account) const {
        return problem_->account_own[account] - own_room_[account];
    }

    [[nodiscard]] std::uint64_t common_taken(std::size_t account) const {
        return common_taken_[account];
    }

    [[nodiscard]] std::uint64_t common_room() const { return common_room_; }

    [[nodiscard]] const FillProblem& problem() const { return *problem_; }

private:
    void find_pieces(std::size_t item);

    const FillProblem* problem_;
    std::vector<std::uint64_t> amounts_;
    std::vector<FillPiece> next_;
    std::vector<FillPiece> last_;
    std::vector<std::uint64_t> node_room_;
    std::vector<std::uint64_t> account_room_;
    std::vector<std::uint64_t> own_room_;
    std::vector<std::uint64_t> common_taken_;
    std::uint64_t common_room_;
};

// Improves the division by positive cycles until there is none, or `work` is used up; returns the
// work that is left.
std::size_t exchange(FillState& state, std::size_t work);

}  // namespace stoker::control
