#include "sidecar/core/sampling/importance_walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/prng.h"

namespace stoker::sidecar {

ImportanceWalk::ImportanceWalk(
    std::uint32_t count, const SamplerSettings& settings, std::uint32_t rank)
    : settings_(settings),
      share_(count, settings.seed, settings.ranks, rank),
      beta_(settings.number("beta")),
      important_from_(important_from(beta_, settings.number("hShare"))),
      history_enough_(
          std::min(settings.count<std::uint32_t>("lossHistory"), std::max(1U, share_.turns() / 2))),
      history_(settings.count<std::uint32_t>("lossHistory")) {}

double ImportanceWalk::important_from(double beta, double h_share) {
    return std::pow(1 - h_share, 1 / (1 + beta));
}

void ImportanceWalk::begin(std::uint64_t epoch, bool full, const LossRanks& losses) {
    full_ = full;
    share_.begin(epoch, settings_.draws_of_epoch(epoch, share_.turns()));
    kept_.assign(full ? 0 : share_.turns(), false);
    important_.assign(full ? 0 : share_.turns(), false);
    decided_ = 0;
    if (!full) {
        fill_history(losses);
    }
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

void ImportanceWalk::fill_history(const LossRanks& losses) {
    history_.clear();
    const std::uint32_t turns = share_.turns();
    for (std::uint32_t turn = turns - std::min(turns, history_.capacity()); turn < turns; ++turn) {
        const SampleIndex sample = share_.sample_at(turn);
        if (losses.knows(sample)) {
            history_.add(losses.loss(sample));
        }
    }
}

void ImportanceWalk::decide(std::uint32_t turn, SampleIndex sample, const LossRanks& losses) {
    bool kept = true;
    bool important = true;
    if (losses.knows(sample)) {
        const float loss = losses.loss(sample);
        if (history_.size() >= history_enough_) {
            Prng luck(settings_.seed ^ (share_.epoch() << 32U) ^ sample);
            const double percentile = history_.rate_and_add(loss, luck.unit());
            kept = luck.unit() < std::pow(percentile, beta_);
            important = percentile >= important_from_;
        } else {
            history_.add(loss);
        }
    }
    kept_[turn] = kept;
    important_[turn] = important;
    decided_ = turn + 1;
}

std::optional<ImportanceWalk::Step> ImportanceWalk::next(const LossRanks& losses) {
    const auto keeps = [this, &losses](std::uint32_t turn, SampleIndex sample) {
        if (!full_ && turn >= decided_) {
            decide(turn, sample, losses);
        }
        return full_ || kept_[turn];
    };
    const auto step = share_.next(losses, keeps);
    if (!step) {
        return std::nullopt;
    }
    return Step{step->sample, full_ || important_[step->turn], step->left_out};
}

}  // namespace stoker::sidecar
