#include "sidecar/core/sampling/loss_ranks.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kBuckets = 1U << 16U;
constexpr std::uint32_t kLowMask = kBuckets - 1;

// A bucket up to this size is sorted at once; a larger one is counted, slice by slice.
constexpr std::uint32_t kSortedAtOnce = 4096;

// The same order as the floats have, as integers.
std::uint32_t key_of(float loss) {
    const auto bits = std::bit_cast<std::uint32_t>(loss);
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

std::uint32_t upper(std::uint32_t key) {
    return key >> 16U;
}

}  // namespace

LossRanks::LossRanks(std::uint32_t count)
    : losses_(count, std::numeric_limits<float>::quiet_NaN()),
      ranks_(count, 1.0F) {
    keys_.reserve(count);
}

bool LossRanks::record(SampleIndex sample, float loss) {
    if (sample >= count() || !std::isfinite(loss)) {
        return false;
    }
    known_ += knows(sample) ? 0 : 1;
    losses_[sample] = loss + 0.0F;  // there is one zero only
    return true;
}

void LossRanks::start() {
    if (phase_ != Phase::kIdle) {
        return;
    }
    keys_.clear();
    heads_.assign(kBuckets, 0);
    ends_.assign(kBuckets, 0);
    enter(Phase::kCopy);
}

bool LossRanks::advance(std::uint64_t steps) {
    while (steps > 0 && phase_ != Phase::kIdle) {
        step_phase(steps);
    }
    return phase_ == Phase::kIdle;
}

void LossRanks::step_phase(std::uint64_t& steps) {
    switch (phase_) {
        case Phase::kCopy:
            return copy(steps);
        case Phase::kPlace:
            return place(steps);
        case Phase::kSort:
            return sort(steps);
        case Phase::kTally:
            return tally(steps);
        case Phase::kRewrite:
            return rewrite(steps);
        case Phase::kPublish:
            return publish(steps);
        case Phase::kIdle:
            return;
    }
}

void LossRanks::enter(Phase phase) {
    phase_ = phase;
    cursor_ = 0;
    bucket_ = 0;
}

std::uint32_t LossRanks::bucket_begin(std::uint32_t bucket) const {
    return bucket == 0 ? 0 : ends_[bucket - 1];
}

// Freezes the keys, so that losses may go on changing, and counts them by their upper half.
void LossRanks::copy(std::uint64_t& steps) {
    for (; steps > 0 && cursor_ < count(); --steps, ++cursor_) {
        if (knows(cursor_)) {
            keys_.push_back(key_of(losses_[cursor_]));
            ++ends_[upper(keys_.back())];
        }
    }
    if (cursor_ == count()) {
        lay_out_buckets();
        enter(Phase::kPlace);
    }
}

void LossRanks::lay_out_buckets() {
    std::uint32_t next = 0;
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
        heads_[bucket] = next;
        next += ends_[bucket];
        ends_[bucket] = next;
    }
}

// American flag sort by the upper half: every step puts one key into its bucket for good.
void LossRanks::place(std::uint64_t& steps) {
    for (; steps > 0 && bucket_ < kBuckets; --steps) {
        if (heads_[bucket_] == ends_[bucket_]) {
            ++bucket_;
            continue;
        }
        std::uint32_t& key = keys_[heads_[bucket_]];
        const std::uint32_t home = upper(key);
        if (home == bucket_) {
            ++heads_[bucket_];
        } else {
            std::swap(key, keys_[heads_[home]++]);
        }
    }
    if (bucket_ == kBuckets) {
        std::fill(heads_.begin(), heads_.end(), 0);
        enter(Phase::kSort);
    }
}

void LossRanks::sort(std::uint64_t& steps) {
    for (; steps > 0 && bucket_ < kBuckets; ++bucket_) {
        const std::uint32_t first = bucket_begin(bucket_);
        const std::uint32_t size = ends_[bucket_] - first;
        if (size > kSortedAtOnce) {
            cursor_ = first;
            phase_ = Phase::kTally;
            return;
        }
        std::sort(keys_.begin() + first, keys_.begin() + ends_[bucket_]);
        steps -= std::min<std::uint64_t>(steps, size + 1);
    }
    if (bucket_ == kBuckets) {
        enter(Phase::kPublish);
    }
}

// Keys carry nothing but themselves, so a large bucket is sorted by counting its lower halves...
void LossRanks::tally(std::uint64_t& steps) {
    for (; steps > 0 && cursor_ < ends_[bucket_]; --steps, ++cursor_) {
        ++heads_[keys_[cursor_] & kLowMask];
    }
    if (cursor_ == ends_[bucket_]) {
        cursor_ = bucket_begin(bucket_);
        low_ = 0;
        phase_ = Phase::kRewrite;
    }
}

// ...and writing them again, which also leaves the counters at zero.
void LossRanks::rewrite(std::uint64_t& steps) {
    for (; steps > 0 && low_ < kBuckets; --steps) {
        if (heads_[low_] == 0) {
            ++low_;
            continue;
        }
        --heads_[low_];
        keys_[cursor_++] = (bucket_ << 16U) | low_;
    }
    if (low_ == kBuckets) {
        ++bucket_;
        phase_ = Phase::kSort;
    }
}

void LossRanks::publish(std::uint64_t& steps) {
    for (; steps > 0 && cursor_ < count(); --steps, ++cursor_) {
        ranks_[cursor_] = knows(cursor_) ? rank_of(losses_[cursor_]) : 1.0F;
    }
    if (cursor_ == count()) {
        heads_ = {};
        ends_ = {};
        ++revision_;
        enter(Phase::kIdle);
    }
}

// Of a loss that may have come after the keys were frozen.
float LossRanks::rank_of(float loss) const {
    const std::uint32_t key = key_of(loss);
    const auto first = keys_.begin() + bucket_begin(upper(key));
    const auto last = keys_.begin() + ends_[upper(key)];
    const auto [low, high] = std::equal_range(first, last, key);
    const auto twice = static_cast<double>((low - keys_.begin()) + (high - keys_.begin()));
    return keys_.empty() ? 1.0F
                         : static_cast<float>(twice / (2.0 * static_cast<double>(keys_.size())));
}

std::size_t LossRanks::memory_bytes() const {
    return sizeof(*this) + losses_.capacity() * sizeof(float) + ranks_.capacity() * sizeof(float) +
           (keys_.capacity() + heads_.capacity() + ends_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace stoker::sidecar
