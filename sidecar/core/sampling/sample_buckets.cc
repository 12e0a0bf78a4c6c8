#include "sidecar/core/sampling/sample_buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/prng.h"

namespace stoker::sidecar {

namespace {

// Thresholds of the wait share; the operator's profile uses the same, as ratios 1.05 and 1.10.
constexpr double kWaitsBelow = 0.05;
constexpr double kWaitsFrom = 0.10;

constexpr double kProgress = 0.01;       // minimum improvement, relative to the best so far
constexpr std::uint32_t kAlikeBits = 3;  // near-duplicates differ in at most so many bits
constexpr std::uint32_t kWaits = 0x80;
constexpr std::uint32_t kUnknown = 127;
constexpr float kSteps = 126;
constexpr std::uint32_t kLooks = 64;  // comparisons per sample and band for near-duplicates
constexpr float kOutside = 0.499F;    // maximum value of a sample outside the bucket

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

SampleBuckets::SampleBuckets(
    std::uint32_t count, const SamplerSettings& settings, BucketOptions options)
    : seed_(settings.seed),
      warmup_epochs_(settings.count<std::uint64_t>("warmupEpochs")),
      out_rate_(settings.number("outRate")),
      min_fraction_(settings.number("minFraction")),
      recall_after_(settings.count<std::uint32_t>("recallAfter")),
      recall_fraction_(settings.number("recallFraction")),
      redundancy_(static_cast<Redundancy>(settings.number("redundancy"))),
      adapt_rate_(options.adapt_rate),
      criteria_(count, std::move(options.criteria)),
      groups_(std::move(options.groups)),
      waiting_(count, false),
      worths_(count, 1) {
    measure();
}

void SampleBuckets::begin_epoch(std::uint64_t epoch) {
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
    without_progress_ = has_progressed() ? 0 : without_progress_ + 1;
    if (is_regular(epoch)) {
        return;
    }
    if (without_progress_ >= recall_after_) {
        without_progress_ = 0;
        recall(epoch);
    } else {
        sample_out();
    }
    measure();
}

void SampleBuckets::on_similarity(
    std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes) {
    const bool is_done = printed_count_ == count();
    if (redundancy_ == Redundancy::kKeep || is_done || samples.size() != hashes.size()) {
        return;
    }
    prints_.resize(count());
    printed_.resize(count());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples[i] < count() && !printed_[samples[i]]) {
            prints_[samples[i]] = hashes[i];
            printed_[samples[i]] = true;
            ++printed_count_;
            has_new_prints_ = true;
        }
    }
}

void SampleBuckets::on_quality(double quality) {
    if (quality >= 0 && quality <= 1) {
        quality_ = quality;
    }
}

void SampleBuckets::on_waiting(double share) {
    if (share >= kWaitsFrom && share <= 1) {
        criteria_.set_bottleneck(Bottleneck::kIo);
    } else if (share >= 0 && share < kWaitsBelow) {
        criteria_.set_bottleneck(Bottleneck::kCompute);
    }
}

void SampleBuckets::group_alike() {
    if (!std::exchange(has_new_prints_, false)) {
        return;
    }
    groups_ = RedundancyGroups{prints_, kAlikeBits, printed_, groups_, kLooks};
    if (printed_count_ == count()) {
        prints_ = {};
        printed_ = {};
    }
    measure();
}

// Whether quality has improved. Uses the last epoch's report, if any, once.
bool SampleBuckets::has_progressed() {
    if (quality_) {
        const double quality = *std::exchange(quality_, std::nullopt);
        const bool better = !best_quality_ || quality > *best_quality_ * (1 + kProgress);
        best_quality_ = better ? quality : best_quality_;
        return better;
    }
    const double loss = criteria_.mean_loss();
    const bool better = !best_loss_ || loss < *best_loss_ * (1 - kProgress);
    best_loss_ = better ? loss : best_loss_;
    return better;
}

// Learnt share of the task, 0..1.
double SampleBuckets::learnt() const {
    if (best_quality_) {
        return *best_quality_;
    }
    return first_loss_ > 0 ? std::clamp(1 - criteria_.mean_loss() / first_loss_, 0.0, 1.0) : 0;
}

void SampleBuckets::sample_out() {
    const double rate = out_rate_ * (adapt_rate_ ? learnt() : 1);
    std::uint32_t all = 0;  // without removed copies, whose old scores would keep them
    std::uint32_t inside = 0;
    std::vector<std::uint32_t> counts(BucketCriteria::kUnknown);  // by score
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        all += is_removed(sample) ? 0 : 1;
        inside += contains(sample) ? 1 : 0;
        if (may_go_out(sample)) {
            ++counts[criteria_.score_steps(sample)];
        }
    }
    const auto stay = static_cast<std::uint32_t>(std::ceil(min_fraction_ * all));
    const std::uint32_t room = inside > stay ? inside - stay : 0;
    std::uint32_t left = std::min(static_cast<std::uint32_t>(rate * inside), room);
    // All below the border score go, and the first ones of those on it.
    std::uint32_t border = 0;
    for (; border < counts.size() && counts[border] <= left; ++border) {
        left -= counts[border];
    }
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        const bool lowest = may_go_out(sample) && criteria_.score_steps(sample) <= border;
        if (lowest && (criteria_.score_steps(sample) < border || left > 0)) {
            left -= criteria_.score_steps(sample) == border ? 1 : 0;
            waiting_[sample] = true;
            ++waiting_count_;
        }
    }
}

bool SampleBuckets::may_go_out(SampleIndex sample) const {
    return contains(sample) && criteria_.score_steps(sample) != BucketCriteria::kUnknown;
}

// Selection sampling (Knuth, algorithm S): recalls exactly the share of the samples outside, in one
// pass.
void SampleBuckets::recall(std::uint64_t epoch) {
    Prng luck(seed_ ^ (epoch * 0x9E3779B97F4A7C15ULL));
    auto left = static_cast<std::uint32_t>(std::ceil(recall_fraction_ * waiting_count_));
    std::uint32_t unseen = waiting_count_;
    waiting_count_ -= left;
    for (SampleIndex sample = 0; sample < count() && left > 0; ++sample) {
        if (!waiting_[sample]) {
            continue;
        }
        if (luck.below(unseen--) < left) {
            waiting_[sample] = false;
            --left;
        }
    }
}

// Every sample in the bucket is read once per epoch, so displacing one by another would only cost a
// fetch: all have the same value.
void SampleBuckets::measure() {
    size_ = 0;
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        size_ += contains(sample) ? 1 : 0;
        worths_[sample] = contains(sample) ? 1 : kOutside * criteria_.ranks()[sample];
    }
}

void SampleBuckets::write(WireWriter& wire) const {
    wire.put(turned_for_).put(without_progress_);
    wire.put(static_cast<std::uint8_t>(criteria_.bottleneck()));
    wire.put(first_loss_).put(best_quality_.value_or(-1)).put(best_loss_.value_or(-1));
    for (SampleIndex sample = 0; sample < count(); ++sample) {
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
}

bool SampleBuckets::read(WireReader& wire) {
    const auto turned_for = wire.get<std::uint64_t>();
    const auto without_progress = wire.get<std::uint32_t>();
    const auto bottleneck = wire.get<std::uint8_t>();
    const auto first_loss = wire.get<double>();
    const auto best_quality = wire.get<double>();
    const auto best_loss = wire.get<double>();
    const auto samples = wire.get_bytes(count());
    const auto copies = read_copies(wire, count());
    if (!wire.ok() || !std::isfinite(first_loss)) {
        return false;
    }
    turned_for_ = turned_for;
    without_progress_ = without_progress;
    criteria_.set_bottleneck(bottleneck == 0 ? Bottleneck::kCompute : Bottleneck::kIo);
    first_loss_ = first_loss;
    best_quality_ = best_quality >= 0 ? std::optional{best_quality} : std::nullopt;
    best_loss_ = best_loss >= 0 ? std::optional{best_loss} : std::nullopt;
    waiting_count_ = 0;
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        const auto byte = std::to_integer<std::uint32_t>(samples[sample]);
        if (const std::uint32_t steps = byte & ~kWaits; steps != kUnknown) {
            criteria_.record_probability(sample, static_cast<float>(steps) / kSteps);
        }
        waiting_[sample] = (byte & kWaits) != 0;
        waiting_count_ += waiting_[sample] ? 1 : 0;
    }
    if (redundancy_ != Redundancy::kKeep && !copies.empty()) {
        groups_ = RedundancyGroups::of(count(), copies);
    }
    criteria_.rescore();
    measure();
    return true;
}

}  // namespace stoker::sidecar
