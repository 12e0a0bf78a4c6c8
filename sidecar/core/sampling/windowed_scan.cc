#include "sidecar/core/sampling/windowed_scan.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Number of draws of all readers after which a speed measurement counts half.
constexpr std::uint32_t kSpeedMemory = 4096;

// Samples of the feed that a draw examines to find the one that will arrive first.
constexpr std::size_t kFeedLooksMax = 32;

SampleIndex any_of_bucket(const NeedIndex::Bucket& bucket, Prng& prng) {
    return bucket.samples[prng.below(bucket.samples.size())];
}

NeedIndex::Readers bit_of(SharedScan::Reader reader) {
    return NeedIndex::Readers{1} << reader;
}

}  // namespace

SharedScan::SharedScan(std::uint32_t sample_count, ScanLimits limits, std::uint64_t seed)
    : index_(sample_count),
      limits_(limits),
      prng_(seed) {}

std::optional<SharedScan::Reader> SharedScan::join() {
    const auto reader = static_cast<Reader>(std::countr_one(joined_));
    if (reader >= std::min(limits_.readers_max, NeedIndex::kReadersMax)) {
        return std::nullopt;
    }
    joined_ |= bit_of(reader);
    readers_[reader] = State{.joined = true};
    return reader;
}

void SharedScan::leave(Reader reader) {
    STOKER_CHECK(readers_[reader].joined, "leave() for a reader that has not joined");
    begin(reader, {});
    joined_ &= ~bit_of(reader);
    active_ &= ~bit_of(reader);
    recent_draws_ -= readers_[reader].draws;
    readers_[reader] = State{};
    replenish();
}

// Divides the window among the readers' lookaheads. Subtracts samples that all readers have drawn
// and that are not dropped yet, because loaders still hold them; but always divides at least a
// quarter of the window, even if a reader never reads its draws.
void SharedScan::share_window() {
    const auto readers = std::max(1U, static_cast<std::uint32_t>(std::popcount(active_)));
    const std::uint32_t drawn = index_.count_of({}, ScanState::kWindow);
    const std::uint32_t left = limits_.window_samples - std::min(limits_.window_samples, drawn);
    const std::uint32_t free = std::max(left, limits_.window_samples / 4);
    lookahead_ = std::clamp(free / (2 * readers), 1U, std::max(1U, limits_.lookahead_max));
}

void SharedScan::begin(Reader reader) {
    begin(reader, {});
    index_.need_all(reader);
    start_epoch(reader);
}

void SharedScan::begin(Reader reader, std::span<const SampleIndex> share) {
    STOKER_CHECK(readers_[reader].joined, "begin() for a reader that has not joined");
    index_.unneed_all(reader);
    for (const SampleIndex sample : index_.copy({}, ScanState::kFresh)) {
        settle(sample);
    }
    const auto useless = [this](SampleIndex sample) { return !is_needed(sample); };
    for (const SampleIndex sample : index_.copy({}, ScanState::kComing)) {
        index_.move(sample, ScanState::kAbsent);
    }
    std::erase_if(feed_, useless);
    if (share.empty()) {
        active_ &= ~bit_of(reader);
        return;
    }
    for (const SampleIndex sample : share) {
        index_.need(sample, reader);
    }
    start_epoch(reader);
}

void SharedScan::start_epoch(Reader reader) {
    State& state = readers_[reader];
    state.length = index_.count(reader);
    state.kept_share = state.length == 0
                           ? 0.0
                           : static_cast<double>(index_.count(reader, ScanState::kKept)) /
                                 static_cast<double>(state.length);
    active_ |= bit_of(reader);
    replenish();
}

std::optional<SampleIndex> SharedScan::draw(Reader reader, Prng& prng) {
    if (index_.count(reader) == 0) {
        active_ &= ~bit_of(reader);
        return std::nullopt;
    }
    const SampleIndex sample = choose(reader, prng);
    take(reader, sample);
    count_draw(reader);
    replenish();
    return sample;
}

void SharedScan::mark_read(Reader reader, SampleIndex sample) {
    if (needs(reader, sample)) {
        take(reader, sample);
    }
}

void SharedScan::take(Reader reader, SampleIndex sample) {
    index_.unneed(sample, reader);
    settle(sample);
}

// Call when a reader no longer needs the sample. If no reader needs it, a pending fetch is given
// up, and a fresh resident becomes a kept one (ScanState).
void SharedScan::settle(SampleIndex sample) {
    if (is_needed(sample)) {
        return;
    }
    if (index_.state(sample) == ScanState::kComing) {
        unfeed(sample);
        index_.move(sample, ScanState::kAbsent);
    } else if (index_.state(sample) == ScanState::kFresh) {
        index_.move(sample, ScanState::kKept);
    }
}

void SharedScan::count_draw(Reader reader) {
    ++readers_[reader].draws;
    if (++recent_draws_ < kSpeedMemory) {
        return;
    }
    recent_draws_ = 0;
    for (State& state : readers_) {
        state.draws /= 2;
        recent_draws_ += state.draws;
    }
}

SampleIndex SharedScan::choose(Reader reader, Prng& prng) {
    const bool has_kept = index_.count(reader, ScanState::kKept) > 0;
    if (has_kept && wants_kept(reader, prng)) {
        return random_kept(reader, prng);
    }
    if (const auto passing = least_needed(reader, prng)) {
        return *passing;
    }
    if (has_kept && kept_ahead(reader) < drift_limit(reader)) {
        return random_kept(reader, prng);
    }
    if (const auto coming = first_coming(reader)) {
        return *coming;
    }
    if (const Bucket* absent = best_absent(bit_of(reader), bit_of(reader))) {
        return order_from(*absent);
    }
    return random_kept(reader, prng);
}

// Whether the reader's next draw is a kept sample instead of a passing one. As in a uniform shuffle,
// each remaining sample comes next with the same probability. Up to ScanLimits::drift_max, a reader
// whose lookahead is full postpones kept samples, and one whose lookahead is empty reads them sooner.
bool SharedScan::wants_kept(Reader reader, Prng& prng) const {
    const double ahead = kept_ahead(reader);
    const std::uint32_t passing = near(reader);
    if (passing == 0 && ahead < drift_limit(reader)) {
        return true;
    }
    if (passing >= 2 * lookahead_ && -ahead < drift_limit(reader)) {
        return false;
    }
    return prng.below(index_.count(reader)) < index_.count(reader, ScanState::kKept);
}

SampleIndex SharedScan::random_kept(Reader reader, Prng& prng) const {
    std::uint64_t place = prng.below(index_.count(reader, ScanState::kKept));
    for (const Bucket& bucket : index_.buckets()) {
        if (bucket.state != ScanState::kKept || (bucket.readers & bit_of(reader)) == 0) {
            continue;
        }
        if (place < bucket.samples.size()) {
            return bucket.samples[place];
        }
        place -= bucket.samples.size();
    }
    STOKER_CHECK(false, "the counts do not match the buckets");
    return 0;
}

std::optional<SampleIndex> SharedScan::least_needed(Reader reader, Prng& prng) const {
    const Bucket* best = nullptr;
    for (const Bucket& bucket : index_.buckets()) {
        const bool passing =
            bucket.state == ScanState::kWindow || bucket.state == ScanState::kFresh;
        if (!passing || bucket.samples.empty() || (bucket.readers & bit_of(reader)) == 0) {
            continue;
        }
        if (best == nullptr || std::popcount(bucket.readers) < std::popcount(best->readers)) {
            best = &bucket;
        }
    }
    return best == nullptr ? std::nullopt : std::optional{any_of_bucket(*best, prng)};
}

// The needed sample that will arrive first. If the first kFeedLooksMax samples of the feed are only
// for other readers: any needed sample that is on its way.
std::optional<SampleIndex> SharedScan::first_coming(Reader reader) const {
    const std::size_t looks = std::min(feed_.size(), kFeedLooksMax);
    for (std::size_t i = 0; i < looks; ++i) {
        if (needs(reader, feed_[i])) {
            return feed_[i];
        }
    }
    if (index_.count(reader, ScanState::kComing) > 0) {
        for (const Bucket& bucket : index_.buckets()) {
            if (bucket.state == ScanState::kComing && !bucket.samples.empty() &&
                (bucket.readers & bit_of(reader)) != 0) {
                return bucket.samples[0];
            }
        }
    }
    return std::nullopt;
}

void SharedScan::on_stored(SampleIndex sample, bool kept) {
    const ScanState was = index_.state(sample);
    if (was == ScanState::kComing) {
        unfeed(sample);
    }
    if (!kept) {
        index_.move(sample, ScanState::kWindow);
    } else if (
        was == ScanState::kAbsent || was == ScanState::kComing || was == ScanState::kWindow) {
        index_.move(sample, is_needed(sample) ? ScanState::kFresh : ScanState::kKept);
    }
}

void SharedScan::on_gone(SampleIndex sample) {
    if (index_.state(sample) == ScanState::kComing) {
        unfeed(sample);
    }
    index_.move(sample, ScanState::kAbsent);
    replenish();
}

// Extends the feed until every reader that cannot wait has its lookahead.
void SharedScan::replenish() {
    share_window();
    for (;;) {
        const Readers lean = hungry(0);
        Readers demanding = lean;
        for (Readers rest = lean; rest != 0; rest &= rest - 1) {
            const auto reader = static_cast<Reader>(std::countr_zero(rest));
            if (can_wait(reader)) {
                demanding &= ~bit_of(reader);
            }
        }
        const Bucket* bucket = demanding == 0 ? nullptr : best_absent(lean, demanding);
        if (bucket == nullptr) {
            return;
        }
        order_from(*bucket);
    }
}

// Readers with less than their lookahead plus `margin` samples stored or on the way.
SharedScan::Readers SharedScan::hungry(std::uint32_t margin) const {
    Readers readers = 0;
    for (Readers rest = active_; rest != 0; rest &= rest - 1) {
        const auto reader = static_cast<Reader>(std::countr_zero(rest));
        if (near(reader) + index_.count(reader, ScanState::kComing) < lookahead_ + margin) {
            readers |= bit_of(reader);
        }
    }
    return readers;
}

// Whether another reader will begin a new epoch, and need all samples again, before this one's
// epoch ends: then its missing samples will be fetched anyway, and it reads stored ones until then.
bool SharedScan::can_wait(Reader reader) const {
    if (near(reader) == 0 && (index_.count(reader, ScanState::kKept) == 0 ||
                              kept_ahead(reader) >= drift_limit(reader))) {
        return false;
    }
    const std::uint64_t mine = index_.count(reader);
    const std::uint64_t my_speed = readers_[reader].draws + 1;
    for (Readers rest = active_ & ~bit_of(reader); rest != 0; rest &= rest - 1) {
        const auto other = static_cast<Reader>(std::countr_zero(rest));
        const std::uint64_t speed = readers_[other].draws + 1;
        if (index_.count(other) * my_speed < mine * speed) {
            return true;
        }
    }
    return false;
}

const SharedScan::Bucket* SharedScan::best_absent(Readers hungry, Readers demanding) const {
    const Bucket* best = nullptr;
    int best_score = 0;
    for (const Bucket& bucket : index_.buckets()) {
        if (bucket.state != ScanState::kAbsent || bucket.samples.empty() ||
            (bucket.readers & demanding) == 0) {
            continue;
        }
        const int served = std::popcount(bucket.readers & hungry);
        const int spoiled = std::popcount(bucket.readers & ~hungry);
        const int score = served * 64 - spoiled;
        if (best == nullptr || score > best_score) {
            best = &bucket;
            best_score = score;
        }
    }
    return best;
}

SampleIndex SharedScan::order_from(const Bucket& bucket) {
    const SampleIndex sample = any_of_bucket(bucket, prng_);
    expect_orders(bucket);
    index_.move(sample, ScanState::kComing);
    feed_.push_back(sample);
    return sample;
}

// Most samples to fetch are chosen from one bucket in a row, so the next two choices can be
// foreseen. Prefetches two things into the processor's cache: the next sample's place in the index,
// and the bucket's entry for the sample after it.
void SharedScan::expect_orders(const Bucket& bucket) const {
    const std::size_t size = bucket.samples.size();
    if (size < 3) {
        return;
    }
    Prng prng = prng_;
    index_.expect(bucket.samples[prng.below(size - 1)]);
    __builtin_prefetch(&bucket.samples[prng.below(size - 2)]);
}

void SharedScan::unfeed(SampleIndex sample) {
    const auto found = std::ranges::find(feed_, sample);
    if (found != feed_.end()) {
        feed_.erase(found);
    }
}

// Buckets of window samples by the harm of dropping them, least harm first. A reader with less than
// its lookahead would request a dropped sample again at once, so buckets that it needs come last,
// and only if `urgent`.
std::vector<const SharedScan::Bucket*> SharedScan::by_loss(bool urgent) const {
    const Readers lean = hungry(1);
    std::vector<const Bucket*> buckets;
    for (const Bucket& bucket : index_.buckets()) {
        if (bucket.state == ScanState::kWindow && bucket.readers != 0 &&
            (urgent || (bucket.readers & lean) == 0)) {
            buckets.push_back(&bucket);
        }
    }
    std::ranges::stable_sort(buckets, {}, [lean](const Bucket* bucket) {
        return std::popcount(bucket->readers & lean) * 64 + std::popcount(bucket->readers);
    });
    return buckets;
}

void SharedScan::victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const {
    std::uint32_t looks = room.urgent ? kVictimLooksMax : kPrefetchLooksMax;
    std::uint32_t missing = room.count;
    for (const Bucket* bucket : by_loss(room.urgent)) {
        const auto size = static_cast<std::uint32_t>(bucket->samples.size());
        const std::uint32_t end = std::min(size, std::max(looks / 2, 1U));
        for (std::uint32_t i = 0; i < end && looks > 0 && missing > 0; ++i, --looks) {
            const SampleIndex sample = bucket->samples[looked_at_++ % size];
            if (!room.may_go || room.may_go(sample)) {
                samples.push_back(sample);
                --missing;
            }
        }
    }
}

std::uint32_t SharedScan::near(Reader reader) const {
    return index_.count(reader, ScanState::kWindow) + index_.count(reader, ScanState::kFresh);
}

// Number of kept samples that the reader has read beyond their share of the epoch so far. Negative:
// it has postponed some.
double SharedScan::kept_ahead(Reader reader) const {
    return readers_[reader].kept_share * static_cast<double>(index_.count(reader)) -
           static_cast<double>(index_.count(reader, ScanState::kKept));
}

double SharedScan::drift_limit(Reader reader) const {
    return limits_.drift_max * static_cast<double>(readers_[reader].length);
}

}  // namespace stoker::sidecar
