#include "sidecar/core/sampling/loss_ranks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kBuckets = 1U << 16U;
constexpr std::uint32_t kLowMask = kBuckets - 1;

// A bucket of at most this size is sorted at once; a larger one by counting, in slices.
constexpr std::uint32_t kSortedAtOnce = 4096;

// Number of binary searches that are interleaved.
constexpr std::uint32_t kSoughtAtOnce = 16;

// An integer that sorts like the float.
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
    losses_[sample] = loss + 0.0F;  // turns -0 into +0
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
        case Phase::kCount:
            return count_low_halves(steps);
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

// Freezes the keys, so that losses may change during the rebuild, and counts them by their upper
// half.
void LossRanks::copy(std::uint64_t& steps) {
    for (; steps > 0 && cursor_ < count(); --steps, ++cursor_) {
        if (knows(cursor_)) {
            keys_.push_back(key_of(losses_[cursor_]));
            ++ends_[upper(keys_.back())];
        }
    }
    if (cursor_ < count()) {
        return;
    }
    lay_out_buckets();
    if (keys_.size() > kSortedAtOnce) {
        return enter(Phase::kPlace);
    }
    // Buckets follow one another in the order of their keys, so one sort fills them all.
    std::ranges::sort(keys_);
    steps -= std::min<std::uint64_t>(steps, keys_.size());
    enter(Phase::kPublish);
}

void LossRanks::lay_out_buckets() {
    std::uint32_t next = 0;
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
        heads_[bucket] = next;
        next += ends_[bucket];
        ends_[bucket] = next;
    }
}

// American flag sort by the upper half: every step puts one key into its final bucket.
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
            phase_ = Phase::kCount;
            return;
        }
        std::sort(keys_.begin() + first, keys_.begin() + ends_[bucket_]);
        steps -= std::min<std::uint64_t>(steps, size + 1);
    }
    if (bucket_ == kBuckets) {
        enter(Phase::kPublish);
    }
}

// First step of sorting a large bucket: counts its keys by their lower half.
void LossRanks::count_low_halves(std::uint64_t& steps) {
    for (; steps > 0 && cursor_ < ends_[bucket_]; --steps, ++cursor_) {
        ++heads_[keys_[cursor_] & kLowMask];
    }
    if (cursor_ == ends_[bucket_]) {
        cursor_ = bucket_begin(bucket_);
        low_ = 0;
        phase_ = Phase::kRewrite;
    }
}

// Second step of sorting a large bucket: writes the keys again from the counts (keys have no
// payload) and resets the counts.
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
    while (steps > 0 && cursor_ < count()) {
        const auto some = static_cast<std::uint32_t>(
            std::min<std::uint64_t>({steps, kSoughtAtOnce, count() - cursor_}));
        publish_some(some);
        cursor_ += some;
        steps -= some;
    }
    if (cursor_ == count()) {
        heads_ = std::vector<std::uint32_t>{};
        ends_ = std::vector<std::uint32_t>{};
        ++revision_;
        enter(Phase::kIdle);
    }
}

// Interleaves binary searches, so that their memory accesses overlap. The losses may be newer than
// the frozen keys.
void LossRanks::publish_some(std::uint32_t samples) {
    struct Search {
        std::uint32_t key = 0;
        std::uint32_t base = 0;
        std::uint32_t size = 0;
    };

    std::array<Search, kSoughtAtOnce> searches;
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < samples; ++i) {
        const std::uint32_t key = knows(cursor_ + i) ? key_of(losses_[cursor_ + i]) : 0;
        const std::uint32_t base = bucket_begin(upper(key));
        searches[i] = {key, base, ends_[upper(key)] - base};
        largest = std::max(largest, searches[i].size);
    }
    for (; largest > 1; largest -= largest / 2) {
        for (Search& search : std::span{searches}.first(samples)) {
            const std::uint32_t half = search.size / 2;
            const bool above = half > 0 && keys_[search.base + half - 1] < search.key;
            search.base += above ? half : 0;
            search.size -= half;
        }
    }
    for (std::uint32_t i = 0; i < samples; ++i) {
        const auto [key, base, size] = searches[i];
        const std::uint32_t below = base + (size == 1 && keys_[base] < key ? 1 : 0);
        ranks_[cursor_ + i] = knows(cursor_ + i) ? middle_rank(below, key) : 1.0F;
    }
}

// Rank of a key with `below` lesser keys.
float LossRanks::middle_rank(std::uint32_t below, std::uint32_t key) const {
    if (keys_.empty()) {
        return 1.0F;
    }
    std::size_t through = below;
    if (through < keys_.size() && keys_[through] == key) {
        ++through;
        if (through < keys_.size() && keys_[through] == key) {
            const auto rest = keys_.begin() + static_cast<std::ptrdiff_t>(through);
            through =
                static_cast<std::size_t>(std::upper_bound(rest, keys_.end(), key) - keys_.begin());
        }
    }
    const auto twice = static_cast<double>(below + through);
    return static_cast<float>(twice / (2.0 * static_cast<double>(keys_.size())));
}

std::size_t LossRanks::memory_bytes() const {
    return sizeof(*this) + losses_.capacity() * sizeof(float) + ranks_.capacity() * sizeof(float) +
           (keys_.capacity() + heads_.capacity() + ends_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace stoker::sidecar
