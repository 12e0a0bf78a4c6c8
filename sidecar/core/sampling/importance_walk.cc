#include "sidecar/core/sampling/importance_walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/prng.h"

namespace stoker::sidecar {

namespace {

// An equal number for every rank, from what all of them know.
std::uint32_t steps_of(const ImportanceWalkSettings& settings, std::uint32_t turns) {
    if (settings.ranks == 1) {
        return turns;
    }
    return static_cast<std::uint32_t>(std::ceil(turns / (1 + settings.beta)));
}

}  // namespace

ImportanceWalk::ImportanceWalk(
    std::uint32_t count, const ImportanceWalkSettings& settings, std::uint32_t rank)
    : count_(count),
      settings_(settings),
      rank_(rank),
      turns_(count / settings.ranks + (count % settings.ranks != 0 ? 1 : 0)),
      steps_max_(steps_of(settings, turns_)),
      ring_enough_(std::min(settings.loss_history, std::max(1U, turns_ / 2))),
      important_from_(important_from(settings.beta, settings.h_share)),
      order_(count, settings.seed, 0),
      ring_(settings.loss_history) {}

double ImportanceWalk::important_from(double beta, double h_share) {
    return std::pow(1 - h_share, 1 / (1 + beta));
}

void ImportanceWalk::begin(std::uint64_t epoch, bool full, const LossRanks& losses) {
    epoch_ = epoch;
    full_ = full;
    order_ = EpochPermutation(count_, settings_.seed, epoch);
    upcoming_count_ = 0;
    kept_.assign(full ? 0 : turns_, false);
    important_.assign(full ? 0 : turns_, false);
    decided_ = 0;
    if (!full) {
        fill_ring(losses);
    }
    rewind();
}

void ImportanceWalk::rewind() {
    turn_ = 0;
    taken_back_ = 0;
    steps_ = 0;
    left_out_ = 0;
}

bool ImportanceWalk::adopt(
    std::vector<bool> kept, std::vector<bool> important, std::uint32_t decided) {
    if (kept.size() != kept_.size() || important.size() != kept_.size() || decided > kept.size()) {
        return false;
    }
    kept_ = std::move(kept);
    important_ = std::move(important);
    decided_ = decided;
    return true;
}

SampleIndex ImportanceWalk::sample_at(std::uint32_t turn) const {
    const std::uint64_t place = std::uint64_t{turn} * settings_.ranks + rank_;
    return order_.at(static_cast<std::uint32_t>(place % count_));
}

void ImportanceWalk::fill_ring(const LossRanks& losses) {
    ring_.clear();
    for (std::uint32_t turn = turns_ - std::min(turns_, settings_.loss_history); turn < turns_;
         ++turn) {
        const SampleIndex sample = sample_at(turn);
        if (losses.knows(sample)) {
            ring_.add(losses.loss(sample));
        }
    }
}

void ImportanceWalk::decide(std::uint32_t turn, const LossRanks& losses) {
    bool kept = true;
    bool important = true;
    const SampleIndex sample = upcoming(turn, losses);
    if (losses.knows(sample)) {
        const float loss = losses.loss(sample);
        if (ring_.size() >= ring_enough_) {
            Prng luck(settings_.seed ^ (epoch_ << 32U) ^ sample);
            const double percentile = ring_.rate_and_add(loss, luck.unit());
            kept = luck.unit() < std::pow(percentile, settings_.beta);
            important = percentile >= important_from_;
        } else {
            ring_.add(loss);
        }
    }
    kept_[turn] = kept;
    important_[turn] = important;
    decided_ = turn + 1;
}

// The same as sample_at(), for turns that are asked for in order: looks ahead, so that the losses
// are in the processor's cache when they are decided by.
SampleIndex ImportanceWalk::upcoming(std::uint32_t turn, const LossRanks& losses) {
    if (turn < upcoming_from_ || turn - upcoming_from_ >= upcoming_count_) {
        upcoming_from_ = turn;
        upcoming_count_ = std::min(static_cast<std::uint32_t>(upcoming_.size()), turns_ - turn);
        for (std::uint32_t i = 0; i < upcoming_count_; ++i) {
            upcoming_[i] = sample_at(turn + i);
            losses.expect(upcoming_[i]);
        }
    }
    return upcoming_[turn - upcoming_from_];
}

std::optional<ImportanceWalk::Step> ImportanceWalk::next(const LossRanks& losses) {
    if (full_) {
        if (turn_ == turns_) {
            return std::nullopt;
        }
        const std::uint32_t turn = turn_++;
        return Step{upcoming(turn, losses), true, 0};
    }
    while (turn_ < turns_ && steps_ < steps_max_) {
        const std::uint32_t turn = turn_++;
        if (turn >= decided_) {
            decide(turn, losses);
        }
        if (kept_[turn]) {
            ++steps_;
            const auto left_out = static_cast<std::int32_t>(std::exchange(left_out_, 0));
            return Step{upcoming(turn, losses), important_[turn], left_out};
        }
        ++left_out_;
    }
    if (settings_.ranks > 1 && steps_ < steps_max_) {
        return take_back();
    }
    left_out_ += turns_ - std::exchange(turn_, turns_);
    return std::nullopt;
}

// Every turn has been decided, and too few are kept.
std::optional<ImportanceWalk::Step> ImportanceWalk::take_back() {
    while (taken_back_ < turns_) {
        const std::uint32_t turn = taken_back_++;
        if (!kept_[turn]) {
            ++steps_;
            const auto left_out = static_cast<std::int32_t>(std::exchange(left_out_, 0));
            return Step{sample_at(turn), important_[turn], left_out - 1};
        }
    }
    return std::nullopt;
}

std::size_t ImportanceWalk::memory_bytes() const {
    return sizeof(*this) + 2 * sizeof(float) * std::size_t{ring_.capacity()} +
           (kept_.capacity() + important_.capacity()) / 8;
}

}  // namespace stoker::sidecar
