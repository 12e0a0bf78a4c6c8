#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "sidecar/core/sampling/epoch_permutation.h"

namespace stoker::sidecar {

// One rank's share of shuffled epochs, walked turn by turn: each turn's sample is kept or left out.
// With several ranks, each makes equally many steps, since DDP hangs otherwise: a rank that kept
// too few takes back left-out samples, one that kept too many stops. Not thread-safe.
class ShareWalk {
public:
    struct Step {
        SampleIndex sample = 0;
        std::uint32_t turn = 0;
        std::int32_t left_out = 0;  // samples left out since the last step; -1: one taken back
    };

    ShareWalk(std::uint32_t count, std::uint64_t seed, std::uint32_t ranks, std::uint32_t rank)
        : seed_(seed),
          ranks_(ranks),
          rank_(rank),
          turns_(count / ranks + (count % ranks != 0 ? 1 : 0)),
          order_(count, seed, 0) {}

    // Begins an epoch of at most `steps_max` steps; with several ranks, of exactly so many.
    void begin(std::uint64_t epoch, std::uint32_t steps_max) {
        epoch_ = epoch;
        steps_max_ = steps_max;
        order_ = EpochPermutation(order_.count(), seed_, epoch);
        upcoming_count_ = 0;
        rewind();
    }

    // Restarts the same epoch.
    void rewind() { turn_ = taken_back_ = steps_ = left_out_ = 0; }

    // The next step; nullopt: the epoch has ended. `keeps(turn, sample)`: whether the rank reads
    // the sample of that turn; it must answer alike on each call. `memory`.expect() is called with
    // samples that will be looked up soon.
    template <class Memory, class Keeps>
    std::optional<Step> next(const Memory& memory, const Keeps& keeps) {
        while (turn_ < turns_ && steps_ < steps_max_) {
            const std::uint32_t turn = turn_++;
            if (const SampleIndex sample = upcoming(turn, memory); keeps(turn, sample)) {
                return step(turn, sample, 0);
            }
            ++left_out_;
        }
        while (ranks_ > 1 && steps_ < steps_max_ && taken_back_ < turns_) {
            const std::uint32_t turn = taken_back_++;
            if (const SampleIndex sample = sample_at(turn); !keeps(turn, sample)) {
                return step(turn, sample, -1);
            }
        }
        return std::nullopt;
    }

    // Undoes the last step of next(), because its sample is not read after all.
    void give_back() { --steps_; }

    [[nodiscard]] SampleIndex sample_at(std::uint32_t turn) const {
        const std::uint64_t position = std::uint64_t{turn} * ranks_ + rank_;
        return order_.at(static_cast<std::uint32_t>(position % order_.count()));
    }

    // Whether this rank reads the sample in this epoch.
    [[nodiscard]] bool owns(SampleIndex sample) const {
        return ranks_ == 1 || order_.position_of(sample) % ranks_ == rank_;
    }

    // Turns per rank: the share, padded with the first samples if the division leaves a remainder.
    [[nodiscard]] std::uint32_t turns() const { return turns_; }

    [[nodiscard]] std::uint32_t steps_max() const { return steps_max_; }

    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

private:
    Step step(std::uint32_t turn, SampleIndex sample, std::int32_t taken_back) {
        ++steps_;
        const auto left_out = static_cast<std::int32_t>(std::exchange(left_out_, 0));
        return {sample, turn, left_out + taken_back};
    }

    // sample_at() for consecutive turns: looks ahead, so that the state of the samples is in the
    // processor's cache when it is needed.
    template <class Memory>
    SampleIndex upcoming(std::uint32_t turn, const Memory& memory) {
        if (turn < upcoming_from_ || turn - upcoming_from_ >= upcoming_count_) {
            upcoming_from_ = turn;
            upcoming_count_ = std::min(static_cast<std::uint32_t>(upcoming_.size()), turns_ - turn);
            for (std::uint32_t i = 0; i < upcoming_count_; ++i) {
                upcoming_[i] = sample_at(turn + i);
                memory.expect(upcoming_[i]);
            }
        }
        return upcoming_[turn - upcoming_from_];
    }

    std::uint64_t seed_;
    std::uint32_t ranks_;
    std::uint32_t rank_;
    std::uint32_t turns_;
    std::uint64_t epoch_ = 0;
    std::uint32_t steps_max_ = 0;
    EpochPermutation order_;

    std::array<SampleIndex, 32> upcoming_ = {};  // samples of the turns from upcoming_from_ on
    std::uint32_t upcoming_from_ = 0;
    std::uint32_t upcoming_count_ = 0;

    std::uint32_t turn_ = 0;
    std::uint32_t taken_back_ = 0;  // turns searched so far for samples to take back
    std::uint32_t steps_ = 0;
    std::uint32_t left_out_ = 0;
};

}  // namespace stoker::sidecar
