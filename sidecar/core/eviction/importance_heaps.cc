#include "sidecar/core/eviction/importance_heaps.h"

#include "common/base/check.h"

namespace stoker::sidecar {

void ImportanceHeaps::put(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    heaps_[heap][index] = entry;
    places_[entry.sample] = (heap << kIndexBits) | index;
}

// Finds the place of `entry` from the free one at `index` towards the root.
void ImportanceHeaps::rise(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    while (index > 0) {
        const std::uint32_t parent = (index - 1) / 2;
        if (!entry.before(heaps_[heap][parent])) {
            break;
        }
        put(heap, index, heaps_[heap][parent]);
        index = parent;
    }
    put(heap, index, entry);
}

// Finds the place of `entry` from the free one at `index`, away from the root or towards it.
void ImportanceHeaps::settle(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    const std::vector<Entry>& entries = heaps_[heap];
    for (;;) {
        std::uint32_t child = 2 * index + 1;
        if (child >= entries.size()) {
            break;
        }
        if (child + 1 < entries.size() && entries[child + 1].before(entries[child])) {
            ++child;
        }
        if (!entries[child].before(entry)) {
            break;
        }
        put(heap, index, entries[child]);
        index = child;
    }
    rise(heap, index, entry);
}

void ImportanceHeaps::insert(std::uint32_t heap, Entry entry) {
    STOKER_CHECK(!holds(entry.sample), "a sample has one place");
    std::vector<Entry>& entries = heaps_[heap];
    STOKER_CHECK(entries.size() < kIndexMask, "a place fits its bits");
    if (entries.size() == entries.capacity()) {
        entries.reserve(entries.size() + entries.size() / 4 + 16);  // a quarter: memory is counted
    }
    entries.push_back(entry);
    rise(heap, static_cast<std::uint32_t>(entries.size() - 1), entry);
}

ImportanceHeaps::Entry ImportanceHeaps::remove(SampleIndex sample) {
    STOKER_CHECK(holds(sample), "only what is held can be taken out");
    const std::uint32_t heap = heap_of(sample);
    const std::uint32_t index = places_[sample] & kIndexMask;
    const Entry gone = heaps_[heap][index];
    const Entry last = take_last(heap);
    if (last.sample != sample) {
        places_[sample] = kNowhere;
        settle(heap, index, last);
    }
    return gone;
}

void ImportanceHeaps::rekey(SampleIndex sample, std::uint32_t key) {
    const std::uint32_t heap = heap_of(sample);
    const std::uint32_t index = places_[sample] & kIndexMask;
    Entry entry = heaps_[heap][index];
    entry.key = key;
    settle(heap, index, entry);
}

ImportanceHeaps::Entry ImportanceHeaps::take_last(std::uint32_t heap) {
    const Entry last = heaps_[heap].back();
    heaps_[heap].pop_back();
    places_[last.sample] = kNowhere;
    return last;
}

std::size_t ImportanceHeaps::memory_bytes() const {
    std::size_t bytes = sizeof(*this) + places_.capacity() * sizeof(places_[0]);
    for (const auto& heap : heaps_) {
        bytes += heap.capacity() * sizeof(Entry);
    }
    return bytes;
}

}  // namespace stoker::sidecar
