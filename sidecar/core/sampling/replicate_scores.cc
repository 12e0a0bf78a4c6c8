#include "sidecar/core/sampling/replicate_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

namespace {

constexpr double kFirstFloor = 0.01;  // of the mean loss

}  // namespace

ReplicateScores::ReplicateScores(std::uint32_t sample_count, double bias)
    : bias_(bias),
      scores_(sample_count, static_cast<float>(std::log(bias))) {}

ReplicateScores::Used ReplicateScores::on_batch(
    std::span<const SampleIndex> samples, std::span<const float> losses) {
    if (samples.size() != losses.size()) {
        return {0, std::max(samples.size(), losses.size())};
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
    return {ranked.size(), losses.size() - ranked.size()};
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

// Sorted uniform points by the spacings of a Poisson process, then one walk along the weights: O(n)
// and in the order of memory, where a search for each draw would miss the cache each time.
std::vector<SampleIndex> ReplicateScores::draw(std::uint64_t count, Prng& prng) const {
    std::vector<double> points(count);
    double at = 0;
    for (double& point : points) {
        at += -std::log1p(-prng.unit());
        point = at;
    }
    at += -std::log1p(-prng.unit());
    double total = 0;
    for (const float score : scores_) {
        total += static_cast<double>(score) + floor_;
    }
    std::vector<SampleIndex> draws;
    draws.reserve(count);
    SampleIndex sample = 0;
    double passed = scores_.empty() ? 0.0 : static_cast<double>(scores_[0]) + floor_;
    for (const double point : points) {
        while (point / at * total > passed && sample + 1 < scores_.size()) {
            passed += static_cast<double>(scores_[++sample]) + floor_;
        }
        draws.push_back(sample);
    }
    shuffle(draws, prng);
    return draws;
}

void ReplicateScores::ranks(std::vector<float>& ranks) const {
    std::vector<std::pair<float, SampleIndex>> order(scores_.size());
    for (SampleIndex sample = 0; sample < scores_.size(); ++sample) {
        order[sample] = {scores_[sample], sample};
    }
    std::ranges::sort(order);
    ranks.resize(scores_.size());
    std::size_t beaten = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i > 0 && order[i].first > order[i - 1].first) {
            beaten = i;
        }
        ranks[order[i].second] =
            static_cast<float>(static_cast<double>(beaten) / static_cast<double>(order.size()));
    }
}

void ReplicateScores::set_state(State state) {
    scores_ = std::move(state.scores);
    floor_ = state.floor;
    last_mean_ = state.last_mean;
    loss_sum_ = 0;
    loss_count_ = 0;
}

}  // namespace stoker::sidecar
