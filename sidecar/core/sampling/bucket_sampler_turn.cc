// The part of BucketSampler that moves samples between the buckets, and its snapshot.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/prng.h"
#include "sidecar/core/sampling/bucket_sampler.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kVersion = 0x33574F49;  // "IOW3"
constexpr std::uint32_t kWaits = 0x80;
constexpr std::uint32_t kUnknown = 127;
constexpr float kSteps = 126;
constexpr std::uint32_t kLooks = 64;  // for near-duplicates, a sample and band
constexpr float kOutside = 0.499F;    // what waits is worth at most

std::vector<RedundancyGroups::Copy> read_copies(WireReader& wire, std::uint32_t count) {
    std::vector<RedundancyGroups::Copy> copies;
    const auto size = std::min(wire.get<std::uint32_t>(), count);
    for (std::uint32_t i = 0; i < size && wire.ok(); ++i) {
        const auto copy = wire.get<std::uint32_t>();
        copies.emplace_back(copy, wire.get<std::uint32_t>());
    }
    return copies;
}

}  // namespace

// Once an epoch, by the first rank to begin it.
void BucketSampler::turn_buckets(std::uint64_t epoch) {
    if (epoch + 1 <= turned_for_) {
        return;
    }
    turned_for_ = epoch + 1;
    group_alike();
    if (criteria_.known() == 0) {
        return;
    }
    criteria_.rescore();
    if (first_loss_ == 0) {
        first_loss_ = criteria_.mean_loss();
    }
    stagnating_ = has_progressed() ? 0 : stagnating_ + 1;
    if (epoch < settings_.warmup) {
        return;
    }
    if (stagnating_ >= settings_.recall_after) {
        stagnating_ = 0;
        recall(epoch);
    } else {
        sample_out();
    }
    count_bucket();
}

void BucketSampler::group_alike() {
    if (!std::exchange(has_new_prints_, false)) {
        return;
    }
    groups_ = RedundancyGroups{prints_, settings_.alike_bits, printed_, groups_, kLooks};
    if (printed_count_ == count_) {
        prints_ = {};
        printed_ = {};
    }
    count_bucket();
}

// Takes the quality of the last epoch, if any, into account once.
bool BucketSampler::has_progressed() {
    const double step = settings_.progress;
    if (quality_) {
        const double quality = *std::exchange(quality_, std::nullopt);
        const bool better = !best_quality_ || quality > *best_quality_ * (1 + step);
        best_quality_ = better ? quality : best_quality_;
        return better;
    }
    const double loss = criteria_.mean_loss();
    const bool better = !best_loss_ || loss < *best_loss_ * (1 - step);
    best_loss_ = better ? loss : best_loss_;
    return better;
}

// How much of the task the model has learnt, 0..1.
double BucketSampler::learnt() const {
    if (best_quality_) {
        return *best_quality_;
    }
    return first_loss_ > 0 ? std::clamp(1 - criteria_.mean_loss() / first_loss_, 0.0, 1.0) : 0;
}

void BucketSampler::sample_out() {
    const double rate = settings_.out_rate * (settings_.adapt_rate ? learnt() : 1);
    std::uint32_t all = 0;  // removed copies are nowhere: they would stay for good, with old scores
    std::uint32_t inside = 0;
    std::vector<std::uint32_t> counts(BucketCriteria::kUnknown);  // by score
    for (SampleIndex sample = 0; sample < count_; ++sample) {
        all += is_removed(sample) ? 0 : 1;
        inside += in_bucket(sample) ? 1 : 0;
        if (may_go_out(sample)) {
            ++counts[criteria_.score_steps(sample)];
        }
    }
    const auto stay = static_cast<std::uint32_t>(std::ceil(settings_.min_fraction * all));
    const std::uint32_t room = inside > stay ? inside - stay : 0;
    std::uint32_t left = std::min(static_cast<std::uint32_t>(rate * inside), room);
    // All below the border go, and of those on it the first.
    std::uint32_t border = 0;
    for (; border < counts.size() && counts[border] <= left; ++border) {
        left -= counts[border];
    }
    for (SampleIndex sample = 0; sample < count_; ++sample) {
        const bool lowest = may_go_out(sample) && criteria_.score_steps(sample) <= border;
        if (lowest && (criteria_.score_steps(sample) < border || left > 0)) {
            left -= criteria_.score_steps(sample) == border ? 1 : 0;
            waiting_[sample] = true;
            ++waiting_count_;
        }
    }
}

bool BucketSampler::may_go_out(SampleIndex sample) const {
    return in_bucket(sample) && criteria_.score_steps(sample) != BucketCriteria::kUnknown;
}

// Selection sampling (Knuth, algorithm S): exactly the share of those that wait, in one pass.
void BucketSampler::recall(std::uint64_t epoch) {
    Prng luck(settings_.seed ^ (epoch * 0x9E3779B97F4A7C15ULL));
    auto left = static_cast<std::uint32_t>(std::ceil(settings_.recall_fraction * waiting_count_));
    std::uint32_t unseen = waiting_count_;
    waiting_count_ -= left;
    for (SampleIndex sample = 0; sample < count_ && left > 0; ++sample) {
        if (!waiting_[sample]) {
            continue;
        }
        if (luck.below(unseen--) < left) {
            waiting_[sample] = false;
            --left;
        }
    }
}

void BucketSampler::count_bucket() {
    bucket_count_ = 0;
    for (SampleIndex sample = 0; sample < count_; ++sample) {
        bucket_count_ += in_bucket(sample) ? 1 : 0;
        worths_[sample] = in_bucket(sample) ? 1 : kOutside * criteria_.ranks()[sample];
    }
}

// One byte a sample: the highest bit says that it waits, the others are p_true in steps of 1/126,
// or 127 where nothing is known. Then the copies. Little-endian; version first.
std::string BucketSampler::snapshot() const {
    WireWriter wire;
    wire.put(kVersion).put(count_).put(settings_.world.ranks).put(settings_.seed);
    wire.put(turned_for_).put(stagnating_);
    wire.put(static_cast<std::uint8_t>(criteria_.bottleneck()));
    wire.put(first_loss_).put(best_quality_.value_or(-1)).put(best_loss_.value_or(-1));
    for (SampleIndex sample = 0; sample < count_; ++sample) {
        const std::uint32_t steps =
            criteria_.knows(sample)
                ? static_cast<std::uint32_t>(std::lround(criteria_.p_true(sample) * kSteps))
                : kUnknown;
        wire.put(static_cast<std::uint8_t>(steps | (waiting_[sample] ? kWaits : 0)));
    }
    const auto copies = groups_.copies();
    wire.put(static_cast<std::uint32_t>(copies.size()));
    for (const auto& [copy, first] : copies) {
        wire.put(copy).put(first);
    }
    return wire.text();
}

bool BucketSampler::restore(std::string_view snapshot) {
    WireReader wire(std::as_bytes(std::span{snapshot}));
    const bool ours = wire.get<std::uint32_t>() == kVersion &&
                      wire.get<std::uint32_t>() == count_ &&
                      wire.get<std::uint32_t>() == settings_.world.ranks &&
                      wire.get<std::uint64_t>() == settings_.seed;
    const auto turned_for = wire.get<std::uint64_t>();
    const auto stagnating = wire.get<std::uint32_t>();
    const auto bottleneck = wire.get<std::uint8_t>();
    const auto first_loss = wire.get<double>();
    const auto best_quality = wire.get<double>();
    const auto best_loss = wire.get<double>();
    const auto samples = wire.get_bytes(count_);
    const auto copies = read_copies(wire, count_);
    if (!ours || !wire.ok() || !std::isfinite(first_loss)) {
        return false;
    }
    turned_for_ = turned_for;
    stagnating_ = stagnating;
    criteria_.set_bottleneck(bottleneck == 0 ? Bottleneck::kCompute : Bottleneck::kIo);
    first_loss_ = first_loss;
    best_quality_ = best_quality >= 0 ? std::optional{best_quality} : std::nullopt;
    best_loss_ = best_loss >= 0 ? std::optional{best_loss} : std::nullopt;
    waiting_count_ = 0;
    for (SampleIndex sample = 0; sample < count_; ++sample) {
        const auto byte = std::to_integer<std::uint32_t>(samples[sample]);
        if (const std::uint32_t steps = byte & ~kWaits; steps != kUnknown) {
            const float p_true = static_cast<float>(steps) / kSteps;
            criteria_.record_probability(sample, p_true);
        }
        waiting_[sample] = (byte & kWaits) != 0;
        waiting_count_ += waiting_[sample] ? 1 : 0;
    }
    if (settings_.redundancy != Redundancy::kKeep && !copies.empty()) {
        groups_ = RedundancyGroups::of(count_, copies);
    }
    criteria_.rescore();
    count_bucket();
    return true;
}

}  // namespace stoker::sidecar
