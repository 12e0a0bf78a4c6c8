#include "sidecar/core/sampling/windowed_index.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// A removal from a bucket moves its last sample into the gap. put() prefetches the state of the
// sample this far from the end, which becomes the last one after about as many removals.
constexpr std::size_t kExpectedLast = 8;

template <class Visit>
void for_each_reader(NeedIndex::Readers readers, const Visit& visit) {
    for (; readers != 0; readers &= readers - 1) {
        visit(static_cast<std::size_t>(std::countr_zero(readers)));
    }
}

}  // namespace

NeedIndex::NeedIndex(std::uint32_t sample_count)
    : where_(sample_count) {
    Bucket& all = buckets_.emplace_back();
    for (SampleIndex sample = 0; sample < sample_count; ++sample) {
        where_[sample].slot = sample;
        all.samples.push_back(sample);
    }
    by_key_[Key{}.packed()] = 0;
    totals_[0] = sample_count;
}

void NeedIndex::need(SampleIndex sample, std::uint32_t reader) {
    put(sample, {readers(sample) | (Readers{1} << reader), state(sample)});
}

void NeedIndex::unneed(SampleIndex sample, std::uint32_t reader) {
    put(sample, {readers(sample) & ~(Readers{1} << reader), state(sample)});
}

std::uint32_t NeedIndex::count(std::uint32_t reader) const {
    return std::accumulate(counts_[reader].begin(), counts_[reader].end(), 0U);
}

std::uint32_t NeedIndex::count_of(Readers readers, ScanState state) const {
    const auto found = by_key_.find(Key{readers, state}.packed());
    return found == by_key_.end()
               ? 0
               : static_cast<std::uint32_t>(buckets_[found->second].samples.size());
}

std::vector<SampleIndex> NeedIndex::copy(Readers readers, ScanState state) const {
    const auto found = by_key_.find(Key{readers, state}.packed());
    if (found == by_key_.end()) {
        return {};
    }
    const auto& samples = buckets_[found->second].samples;
    std::vector<SampleIndex> copied(samples.size());
    for (std::size_t i = 0; i < copied.size(); ++i) {
        copied[i] = samples[i];
    }
    return copied;
}

void NeedIndex::need_all(std::uint32_t reader) {
    STOKER_CHECK(count(reader) == 0, "the reader still needs samples of its last epoch");
    const auto count = static_cast<std::uint32_t>(buckets_.size());
    // No key has the reader's bit yet, so the new keys are distinct.
    by_key_.clear();
    for (std::uint32_t bucket = 0; bucket < count; ++bucket) {
        Bucket& renamed = buckets_[bucket];
        if (!renamed.samples.empty()) {
            renamed.readers |= Readers{1} << reader;
            by_key_[Key{renamed.readers, renamed.state}.packed()] = bucket;
        }
    }
    counts_[reader] = totals_;
}

void NeedIndex::unneed_all(std::uint32_t reader) {
    const Readers bit = Readers{1} << reader;
    const auto count = static_cast<std::uint32_t>(buckets_.size());
    for (std::uint32_t bucket = 0; bucket < count; ++bucket) {
        if ((buckets_[bucket].readers & bit) != 0 && !buckets_[bucket].samples.empty()) {
            rename(bucket, buckets_[bucket].readers & ~bit);
        }
    }
    counts_[reader] = {};
}

// Gives the bucket another set of readers; merges it with the bucket of that set, if there is one.
// Does not change counts_: the caller does.
void NeedIndex::rename(std::uint32_t from, Readers readers) {
    const Key key{readers, buckets_[from].state};
    by_key_.erase(Key{buckets_[from].readers, key.state}.packed());
    const auto existing = by_key_.find(key.packed());
    if (existing == by_key_.end()) {
        buckets_[from].readers = readers;
        by_key_[key.packed()] = from;
        return;
    }
    const std::uint32_t into = existing->second;
    auto& left = buckets_[from].samples;
    auto& joined = buckets_[into].samples;
    for (; !left.empty(); left.pop_back()) {
        where_[left.back()] = {into, static_cast<std::uint32_t>(joined.size())};
        joined.push_back(left.back());
    }
    left.clear();
    retired_.push_back(from);
}

std::uint32_t NeedIndex::bucket_for(Key key) {
    const auto [found, added] = by_key_.try_emplace(key.packed(), 0);
    if (!added) {
        return found->second;
    }
    if (retired_.empty()) {
        found->second = static_cast<std::uint32_t>(buckets_.size());
        buckets_.emplace_back();
    } else {
        found->second = retired_.back();
        retired_.pop_back();
    }
    buckets_[found->second].readers = key.readers;
    buckets_[found->second].state = key.state;
    return found->second;
}

void NeedIndex::put(SampleIndex sample, Key key) {
    const std::uint32_t from = where_[sample].bucket;
    const Key old{buckets_[from].readers, buckets_[from].state};
    if (old.packed() == key.packed()) {
        return;
    }
    const auto before = static_cast<std::size_t>(old.state);
    const auto after = static_cast<std::size_t>(key.state);
    for_each_reader(old.readers, [&](std::size_t reader) { --counts_[reader][before]; });
    for_each_reader(key.readers, [&](std::size_t reader) { ++counts_[reader][after]; });
    --totals_[before];
    ++totals_[after];

    auto& left = buckets_[from].samples;
    const SampleIndex last = left.back();
    left[where_[sample].slot] = last;
    where_[last].slot = where_[sample].slot;
    left.pop_back();
    if (left.empty()) {
        retire(from);
    } else if (left.size() > kExpectedLast) {
        expect(left[left.size() - kExpectedLast]);  // a sample at the end moves when another leaves
    }
    const std::uint32_t into = bucket_for(key);
    where_[sample] = {into, static_cast<std::uint32_t>(buckets_[into].samples.size())};
    buckets_[into].samples.push_back(sample);
}

void NeedIndex::retire(std::uint32_t bucket) {
    Bucket& empty = buckets_[bucket];
    by_key_.erase(Key{empty.readers, empty.state}.packed());
    retired_.push_back(bucket);
}

}  // namespace stoker::sidecar
