#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Three binary min-heaps over one set of samples: each sample is in one of them or in none, can be
// found, taken out and given another key there. Least key first, ties by the lower sample. Memory:
// 4 bytes a sample of the dataset, 12 a sample held. Every change is O(log n). Not thread-safe.
class ImportanceHeaps {
public:
    static constexpr std::uint32_t kHeaps = 3;

    struct Entry {
        std::uint32_t key = 0;
        SampleIndex sample = 0;
        std::uint32_t bytes = 0;

        [[nodiscard]] bool before(const Entry& other) const {
            return key != other.key ? key < other.key : sample < other.sample;
        }
    };

    explicit ImportanceHeaps(std::uint32_t count)
        : places_(count, kNowhere) {}

    [[nodiscard]] bool holds(SampleIndex sample) const { return places_[sample] != kNowhere; }

    // Of a sample that is held.
    [[nodiscard]] std::uint32_t heap_of(SampleIndex sample) const {
        return places_[sample] >> kIndexBits;
    }

    // Of a sample that is held.
    [[nodiscard]] const Entry& entry(SampleIndex sample) const {
        return heaps_[heap_of(sample)][places_[sample] & kIndexMask];
    }

    // In heap order: the children of entry i are entries 2i+1 and 2i+2, and not before it.
    [[nodiscard]] std::span<const Entry> entries(std::uint32_t heap) const { return heaps_[heap]; }

    // `entry.sample` must not be held.
    void insert(std::uint32_t heap, Entry entry);

    // The sample must be held.
    Entry remove(SampleIndex sample);
    void rekey(SampleIndex sample, std::uint32_t key);

    // Takes an entry out where that costs least; the heap must not be empty.
    Entry take_last(std::uint32_t heap);

    [[nodiscard]] std::size_t memory_bytes() const;

private:
    static constexpr std::uint32_t kIndexBits = 30;
    static constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;
    static constexpr std::uint32_t kNowhere = ~0U;

    void put(std::uint32_t heap, std::uint32_t index, const Entry& entry);
    void rise(std::uint32_t heap, std::uint32_t index, const Entry& entry);
    void settle(std::uint32_t heap, std::uint32_t index, const Entry& entry);

    std::array<std::vector<Entry>, kHeaps> heaps_;
    std::vector<std::uint32_t> places_;  // heap and index
};

}  // namespace stoker::sidecar
