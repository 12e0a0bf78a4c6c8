#include "sidecar/core/sampling/sample_buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/prng.h"

namespace stoker::sidecar {

namespace {

// Thresholds for the share of its time that the job waits for data. The operator's profile uses the
// same ones, as the speedups 1.05 and 1.10 that the job would have without waiting.
constexpr double kWaitsBelow = 0.05;
constexpr double kWaitsFrom = 0.10;

constexpr double kProgress = 0.01;       // minimum improvement, relative to the best so far
constexpr std::uint32_t kAlikeBits = 3;  // near-duplicates differ in at most this many bits
constexpr std::uint32_t kWaits = 0x80;
constexpr std::uint32_t kUnknown = 127;
constexpr float kSteps = 126;
constexpr std::uint32_t kLooks = 64;  // comparisons per sample and band for near-duplicates
constexpr float kOutside = 0.499F;    // maximum value of a sample outside the bucket
constexpr std::uint32_t kNoOther = 255;
constexpr float kOtherSteps = 254;

// The group member that an epoch reads. Most groups are single samples, which need no division.
SampleIndex turn_of(std::span<const SampleIndex> part, std::uint64_t epoch) {
    return part.size() == 1 ? part.front() : part[epoch % part.size()];
}

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
    : settings_(settings),
      out_rate_(settings.number("outRate")),
      min_fraction_(settings.number("minFraction")),
      recall_after_(settings.count<std::uint32_t>("recallAfter")),
      recall_fraction_(settings.number("recallFraction")),
      redundancy_(static_cast<Redundancy>(settings.number("redundancy"))),
      adapt_rate_(options.adapt_rate),
      criteria_(count, std::move(options.criteria)),
      groups_(std::move(options.groups)),
      latency_bytes_(std::move(options.latency_bytes)),
      waiting_(count, false),
      reads_(std::make_shared<std::vector<bool>>(count, true)),
      worths_(count, 1) {
    measure(epoch());
}

template <class Visit>
void SampleBuckets::each_part(const Visit& visit) const {
    if (redundancy_ == Redundancy::kRemove && !groups_.empty()) {
        groups_.each_part(kTurnsMax, visit);
        return;
    }
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        visit(std::span<const SampleIndex>{&sample, 1});
    }
}

void SampleBuckets::move(std::span<const SampleIndex> part, bool out) {
    for (const SampleIndex sample : part) {
        waiting_[sample] = out;
    }
    waiting_count_ += out ? 1 : -1;
}

void SampleBuckets::begin_epoch(std::uint64_t epoch) {
    if (epoch + 1 <= turned_for_) {
        if (epoch != read_in_) {
            measure(epoch);
        }
        return;
    }
    turned_for_ = epoch + 1;
    group_alike();
    if (criteria_.known() == 0) {
        measure(epoch);
        return;
    }
    if (const auto measured = latency_bytes_ ? latency_bytes_() : std::nullopt) {
        criteria_.set_latency_bytes(*measured);
    }
    criteria_.rescore();
    if (first_loss_ == 0) {
        first_loss_ = criteria_.mean_loss();
    }
    without_progress_ = has_progressed() ? 0 : without_progress_ + 1;
    if (!is_regular(epoch)) {
        if (settings_.ranks == 1) {
            follow_progress();
        } else {
            follow_schedule();
        }
    }
    measure(epoch);
}

void SampleBuckets::follow_progress() {
    if (without_progress_ < recall_after_) {
        sample_out(leaving());
        return;
    }
    without_progress_ = 0;
    recall(static_cast<std::uint32_t>(std::ceil(recall_fraction_ * waiting_count_)));
}

void SampleBuckets::follow_schedule() {
    const std::uint32_t all = parts();
    const std::uint32_t inside = all - waiting_count_;
    const std::uint32_t scheduled = settings_.draws_of_epoch(epoch(), all);
    if (inside > scheduled) {
        sample_out(inside - scheduled);
    } else {
        recall(scheduled - inside);
    }
}

std::uint32_t SampleBuckets::parts() const {
    std::uint32_t all = 0;
    each_part([&all](std::span<const SampleIndex> /*part*/) { ++all; });
    return all;
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
    settle_parts();
}

// Call after the groups have changed: a group is outside the bucket if all its members were.
void SampleBuckets::settle_parts() {
    waiting_count_ = 0;
    each_part([this](std::span<const SampleIndex> part) {
        const bool out =
            std::ranges::all_of(part, [this](auto sample) { return waiting_[sample]; });
        for (const SampleIndex sample : part) {
            waiting_[sample] = out;
        }
        waiting_count_ += out ? 1 : 0;
    });
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

// Share of the task that the job has learnt, 0..1.
double SampleBuckets::learnt() const {
    if (best_quality_) {
        return *best_quality_;
    }
    return first_loss_ > 0 ? std::clamp(1 - criteria_.mean_loss() / first_loss_, 0.0, 1.0) : 0;
}

// Number of groups (or single samples) that this epoch moves out of the bucket.
std::uint32_t SampleBuckets::leaving() const {
    const std::uint32_t all = parts();
    const double rate = out_rate_ * (adapt_rate_ ? learnt() : 1);
    const std::uint32_t inside = all - waiting_count_;
    const auto stay = static_cast<std::uint32_t>(std::ceil(min_fraction_ * all));
    const std::uint32_t room = inside > stay ? inside - stay : 0;
    return std::min(static_cast<std::uint32_t>(rate * inside), room);
}

// Moves `left` groups out of the bucket: those with the lowest scores.
void SampleBuckets::sample_out(std::uint32_t left) {
    // Number of groups in the bucket, by score. The last entry counts groups without a score and is
    // not used.
    std::vector<std::uint32_t> counts(BucketCriteria::kUnknown + 1U);
    each_part([&](std::span<const SampleIndex> part) {
        if (!waiting_[part.front()]) {
            ++counts[score_of(part)];
        }
    });
    std::uint32_t border = 0;
    for (; border < BucketCriteria::kUnknown && counts[border] <= left; ++border) {
        left -= counts[border];
    }
    // Moves all groups below the border score, and a random choice of the groups at that score: the
    // first of a listing often belong to one class.
    Prng random(settings_.seed ^ (epoch() * 0x9E3779B97F4A7C15ULL));
    std::uint32_t on_border = counts[border];
    each_part([&](std::span<const SampleIndex> part) {
        if (waiting_[part.front()]) {
            return;
        }
        const BucketCriteria::Steps score = score_of(part);
        if (score == BucketCriteria::kUnknown || score > border) {
            return;
        }
        const bool chosen = score < border || random.below(on_border--) < left;
        if (chosen) {
            left -= score == border ? 1 : 0;
            move(part, true);
        }
    });
}

// The score of the group member that was read last.
BucketCriteria::Steps SampleBuckets::score_of(std::span<const SampleIndex> part) const {
    const std::uint64_t last = epoch() + part.size() - 1;  // epoch() - 1, but not below 0
    return criteria_.score_steps(turn_of(part, last));
}

// Selection sampling (Knuth, algorithm S): returns exactly `left` of the groups that are outside to
// the bucket, in one pass.
void SampleBuckets::recall(std::uint32_t left) {
    Prng random(settings_.seed ^ (epoch() * 0x9E3779B97F4A7C15ULL));
    std::uint32_t unseen = waiting_count_;
    each_part([&](std::span<const SampleIndex> part) {
        if (waiting_[part.front()] && random.below(unseen--) < left) {
            move(part, false);
            --left;
        }
    });
}

// Sets which samples `epoch` reads, and each sample's worth to the cache (worths()). All samples
// that every epoch reads have one worth: displacing one by another would only cost a fetch.
void SampleBuckets::measure(std::uint64_t epoch) {
    if (reads_.use_count() > 1) {
        reads_ = std::make_shared<std::vector<bool>>(*reads_);
    }
    read_in_ = epoch;
    size_ = 0;
    each_part([this, epoch, &read = *reads_](std::span<const SampleIndex> part) {
        const bool out = waiting_[part.front()];
        const SampleIndex turn = turn_of(part, epoch);
        const float worth = 0.5F + 0.5F / static_cast<float>(part.size());
        for (const SampleIndex sample : part) {
            if (const bool reads = !out && sample == turn; read[sample] != reads) {
                read[sample] = reads;  // few flags change, and writing a bit is slow
            }
            worths_[sample] = out ? kOutside * criteria_.ranks()[sample] : worth;
        }
        size_ += out ? 0 : 1;
    });
}

void SampleBuckets::write(WireWriter& wire) const {
    wire.put(turned_for_).put(without_progress_);
    wire.put(static_cast<std::uint8_t>(criteria_.bottleneck())).put(criteria_.latency_bytes());
    wire.put(first_loss_).put(best_quality_.value_or(-1)).put(best_loss_.value_or(-1));
    bool has_others = false;
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        const std::uint32_t steps =
            criteria_.knows(sample)
                ? static_cast<std::uint32_t>(std::lround(criteria_.p_true(sample) * kSteps))
                : kUnknown;
        wire.put(static_cast<std::uint8_t>(steps | (waiting_[sample] ? kWaits : 0)));
        has_others = has_others || criteria_.knows_other(sample);
    }
    wire.put(static_cast<std::uint8_t>(has_others ? 1 : 0));
    for (SampleIndex sample = 0; has_others && sample < count(); ++sample) {
        wire.put(static_cast<std::uint8_t>(
            criteria_.knows_other(sample) ? std::lround(criteria_.p_other(sample) * kOtherSteps)
                                          : kNoOther));
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
    const auto latency_bytes = wire.get<double>();
    const auto first_loss = wire.get<double>();
    const auto best_quality = wire.get<double>();
    const auto best_loss = wire.get<double>();
    const auto samples = wire.get_bytes(count());
    const auto others = wire.get_bytes(wire.get<std::uint8_t>() == 0 ? 0 : count());
    const auto copies = read_copies(wire, count());
    if (!wire.ok() || !std::isfinite(first_loss) || !(latency_bytes >= 0)) {
        return false;
    }
    turned_for_ = turned_for;
    without_progress_ = without_progress;
    criteria_.set_bottleneck(bottleneck == 0 ? Bottleneck::kCompute : Bottleneck::kIo);
    criteria_.set_latency_bytes(latency_bytes);
    first_loss_ = first_loss;
    best_quality_ = best_quality >= 0 ? std::optional{best_quality} : std::nullopt;
    best_loss_ = best_loss >= 0 ? std::optional{best_loss} : std::nullopt;
    if (redundancy_ != Redundancy::kKeep && !copies.empty()) {
        groups_ = RedundancyGroups::of(count(), copies);
    }
    read_samples(samples, others);
    criteria_.rescore();
    settle_parts();
    measure(epoch());
    return true;
}

void SampleBuckets::read_samples(
    std::span<const std::byte> samples, std::span<const std::byte> others) {
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        const auto byte = std::to_integer<std::uint32_t>(samples[sample]);
        waiting_[sample] = (byte & kWaits) != 0;
        if (const std::uint32_t steps = byte & ~kWaits; steps != kUnknown) {
            criteria_.record_probability(sample, static_cast<float>(steps) / kSteps);
        }
        if (!others.empty() && std::to_integer<std::uint32_t>(others[sample]) != kNoOther) {
            criteria_.record_other(
                sample, std::to_integer<std::uint8_t>(others[sample]) / kOtherSteps);
        }
    }
}

}  // namespace stoker::sidecar
