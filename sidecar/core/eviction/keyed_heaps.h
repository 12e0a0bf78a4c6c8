#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/piece_list.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Key of a sample in LFU and LRU order: first its number of reads, then the time of the last one.
struct ReadKey {
    std::uint32_t reads = 0;
    std::uint64_t read_at = 0;  // number of the last read among all reads

    auto operator<=>(const ReadKey&) const = default;
};

// Three min-heaps over one set of samples: each sample is in at most one of them, where it can be
// found, removed and given another key. Least key first, ties by the lower sample. Each entry has
// four children: half the depth of a binary heap, hence fewer cache misses. Memory: 4 bytes per
// sample of the dataset, 8 and a key per sample held. Every change is O(log n). Not thread-safe.
template <class Key>
class KeyedHeaps {
public:
    static constexpr std::uint32_t kHeaps = 3;
    static constexpr std::uint32_t kChildren = 4;

    struct Entry {
        Key key{};
        SampleIndex sample = 0;
        std::uint32_t bytes = 0;

        [[nodiscard]] bool before(const Entry& other) const {
            return key != other.key ? key < other.key : sample < other.sample;
        }
    };

    struct Candidate {
        Entry entry;
        std::uint32_t heap = 0;
        std::uint32_t index = 0;
    };

    class Ascent;

    // A walk's decision on the entry that it has reached.
    enum class Choice : std::uint8_t { kTake, kPassOver, kStop };

    // A list in pieces: while its entries move to another list, its memory is freed piece by piece.
    using Entries = PieceList<Entry, 1024>;

    explicit KeyedHeaps(std::uint32_t count)
        : locations_(count, kNowhere) {}

    [[nodiscard]] std::uint32_t count() const {
        return static_cast<std::uint32_t>(locations_.size());
    }

    // Allows samples with ids below `count`; never shrinks.
    void grow(std::uint32_t count) { locations_.resize(count, kNowhere); }

    [[nodiscard]] bool holds(SampleIndex sample) const { return locations_[sample] != kNowhere; }

    // Hint: the sample is queried soon; prefetches its entry. Precondition: it is below count().
    void expect(SampleIndex sample) const { __builtin_prefetch(&locations_[sample]); }

    // The heap that holds the sample. Precondition: one does.
    [[nodiscard]] std::uint32_t heap_of(SampleIndex sample) const {
        return locations_[sample] >> kIndexBits;
    }

    // The sample's entry. Precondition: a heap holds the sample.
    [[nodiscard]] const Entry& entry(SampleIndex sample) const {
        return heaps_[heap_of(sample)][locations_[sample] & kIndexMask];
    }

    // The heap's entries in heap order: the children of entry i are the kChildren entries from
    // kChildren * i + 1 on; no child is less than its parent.
    [[nodiscard]] const Entries& entries(std::uint32_t heap) const { return heaps_[heap]; }

    // Adds an entry. No heap may hold `entry.sample` yet.
    void insert(std::uint32_t heap, Entry entry);

    // Removes the sample's entry and returns it. A heap must hold the sample.
    Entry remove(SampleIndex sample);
    void rekey(SampleIndex sample, Key key);

    // Removes and returns the entry that is cheapest to remove; the heap must not be empty.
    Entry take_last(std::uint32_t heap);

    // Appends the heap's samples, least key first, until they have the given bytes, or all samples.
    // Removes none. `candidates`: as for Ascent.
    void take_least(
        std::uint32_t heap,
        Bytes bytes,
        std::vector<Candidate>& candidates,
        std::vector<SampleIndex>& samples) const;

private:
    static constexpr std::uint32_t kIndexBits = 30;
    static constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;
    static constexpr std::uint32_t kNowhere = ~0U;

    void put(std::uint32_t heap, std::uint32_t index, const Entry& entry);
    void rise(std::uint32_t heap, std::uint32_t index, const Entry& entry);
    void settle(std::uint32_t heap, std::uint32_t index, const Entry& entry);

    std::array<Entries, kHeaps> heaps_;
    std::vector<std::uint32_t> locations_;  // by sample: its heap and index there
};

using ImportanceHeaps = KeyedHeaps<std::uint32_t>;

// An entry's bytes, at most 4 GiB.
inline std::uint32_t saturated(Bytes bytes) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes.count(), std::numeric_limits<std::uint32_t>::max()));
}

// Walks the entries of some heaps in key order without changing the heaps, which must not change
// meanwhile. O(log n) per entry, O(1) for the first.
template <class Key>
class KeyedHeaps<Key>::Ascent {
public:
    using Candidate = KeyedHeaps::Candidate;

    // `candidates`: buffer that the caller reuses between walks.
    Ascent(
        const KeyedHeaps& heaps,
        std::initializer_list<std::uint32_t> which,
        std::vector<Candidate>& candidates);

    // The next entry, or null. Valid until the next call.
    const Entry* next();

    // Appends the samples of the next entries that `choose` takes, until they have `needed` bytes
    // in all. False: `choose` stopped first, or no entries are left.
    template <class Choose>
    bool take(Bytes needed, const Choose& choose, std::vector<SampleIndex>& samples) {
        for (Bytes taken; taken < needed;) {
            const Entry* entry = next();
            const Choice choice = entry == nullptr ? Choice::kStop : choose(*entry);
            if (choice == Choice::kStop) {
                return false;
            }
            if (choice == Choice::kTake) {
                samples.push_back(entry->sample);
                taken += Bytes{entry->bytes};
            }
        }
        return true;
    }

    // Does what take() does, but appends nothing if the result is false.
    template <class Choose>
    bool take_all(Bytes needed, const Choose& choose, std::vector<SampleIndex>& samples) {
        const std::size_t before = samples.size();
        if (!take(needed, choose, samples)) {
            samples.resize(before);
            return false;
        }
        return true;
    }

private:
    static bool later(const Candidate& a, const Candidate& b) { return b.entry.before(a.entry); }

    void offer(std::uint32_t heap, std::uint32_t index);

    const KeyedHeaps& heaps_;
    std::vector<Candidate>& candidates_;
    Candidate current_;
    bool has_current_ = false;
};

}  // namespace stoker::sidecar
