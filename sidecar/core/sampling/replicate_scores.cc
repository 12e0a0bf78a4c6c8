#include "sidecar/core/sampling/replicate_scores.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

namespace {

constexpr double kFirstFloor = 0.01;  // first floor, as a share of the mean loss

}  // namespace

ReplicateScores::ReplicateScores(std::uint32_t sample_count, double bias, double unseen)
    : bias_(bias),
      scores_(sample_count, static_cast<float>(unseen > 0 ? unseen : std::log(bias))) {}

std::uint64_t ReplicateScores::on_batch(
    std::span<const SampleIndex> samples, std::span<const float> losses) {
    if (samples.size() != losses.size()) {
        return 0;
    }
    std::vector<std::pair<float, SampleIndex>> ranked;
    ranked.reserve(losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (samples[i] < scores_.size() && std::isfinite(losses[i]) && losses[i] >= 0) {
            ranked.emplace_back(losses[i], samples[i]);
            loss_sum_ += static_cast<double>(losses[i]);
            ++loss_count_;
        }
    }
    std::ranges::sort(ranked);
    std::size_t beaten = 0;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        if (i > 0 && ranked[i].first > ranked[i - 1].first) {
            beaten = i;
        }
        scores_[ranked[i].second] =
            static_cast<float>(std::log(static_cast<double>(beaten) + bias_));
    }
    return ranked.size();
}

void ReplicateScores::end_epoch() {
    if (loss_count_ == 0) {
        return;
    }
    const double mean = loss_sum_ / static_cast<double>(loss_count_);
    if (last_mean_ > 0) {
        floor_ *= std::exp((mean - last_mean_) / last_mean_);
    } else {
        floor_ = kFirstFloor * mean;
    }
    last_mean_ = mean;
    loss_sum_ = 0;
    loss_count_ = 0;
}

// Draws sorted uniform points by the spacings of a Poisson process, then walks the weights once:
// O(n) and sequential, where a binary search per draw would miss the cache. Generates the spacings
// twice from the same random stream, for their sum and for the points: one more logarithm per draw,
// but eight bytes less.
std::vector<SampleIndex> ReplicateScores::draw(std::uint64_t count, Prng& prng) const {
    const auto spacing = [](Prng& luck) { return -std::log1p(-luck.unit()); };
    Prng again = prng;
    double length = 0;
    for (std::uint64_t i = 0; i <= count; ++i) {
        length += spacing(prng);
    }
    double total = 0;
    for (const float score : scores_) {
        total += static_cast<double>(score) + floor_;
    }
    std::vector<SampleIndex> draws;
    draws.reserve(count);
    SampleIndex sample = 0;
    double passed = scores_.empty() ? 0.0 : static_cast<double>(scores_[0]) + floor_;
    double at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        at += spacing(again);
        while (at / length * total > passed && sample + 1 < scores_.size()) {
            passed += static_cast<double>(scores_[++sample]) + floor_;
        }
        draws.push_back(sample);
    }
    shuffle(draws, prng);
    return draws;
}

// Ranks by distinct scores: these are few, at most the length of a batch, while samples are many.
void ReplicateScores::ranks(std::vector<float>& ranks) const {
    std::unordered_map<float, std::uint32_t> counts;
    for (const float score : scores_) {
        ++counts[score];
    }
    std::vector<float> distinct;
    for (const auto& [score, count] : counts) {
        distinct.push_back(score);
    }
    std::ranges::sort(distinct);
    std::unordered_map<float, float> rank_of;
    std::uint64_t beaten = 0;
    for (const float score : distinct) {
        rank_of[score] =
            static_cast<float>(static_cast<double>(beaten) / static_cast<double>(scores_.size()));
        beaten += counts[score];
    }
    ranks.resize(scores_.size());
    std::ranges::transform(
        scores_, ranks.begin(), [&rank_of](float score) { return rank_of.at(score); });
}

void ReplicateScores::set_state(State state) {
    scores_ = std::move(state.scores);
    floor_ = state.floor;
    last_mean_ = state.last_mean;
    loss_sum_ = 0;
    loss_count_ = 0;
}

}  // namespace stoker::sidecar
