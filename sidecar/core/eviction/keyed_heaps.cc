#include "sidecar/core/eviction/keyed_heaps.h"

#include <algorithm>

#include "common/base/check.h"

namespace stoker::sidecar {

template <class Key>
void KeyedHeaps<Key>::put(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    heaps_[heap][index] = entry;
    locations_[entry.sample] = (heap << kIndexBits) | index;
}

// Moves `entry` from the free index towards the root, to its place in the heap.
template <class Key>
void KeyedHeaps<Key>::rise(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    while (index > 0) {
        const std::uint32_t parent = (index - 1) / kChildren;
        if (!entry.before(heaps_[heap][parent])) {
            break;
        }
        put(heap, index, heaps_[heap][parent]);
        index = parent;
    }
    put(heap, index, entry);
}

// Moves `entry` from the free index up or down, to its place in the heap.
template <class Key>
void KeyedHeaps<Key>::settle(std::uint32_t heap, std::uint32_t index, const Entry& entry) {
    const Entries& entries = heaps_[heap];
    for (;;) {
        const std::uint32_t first = kChildren * index + 1;
        if (first >= entries.size()) {
            break;
        }
        const auto end = std::min<std::size_t>(first + kChildren, entries.size());
        std::uint32_t child = first;
        for (std::uint32_t other = first + 1; other < end; ++other) {
            child = entries[other].before(entries[child]) ? other : child;
        }
        if (!entries[child].before(entry)) {
            break;
        }
        put(heap, index, entries[child]);
        index = child;
    }
    rise(heap, index, entry);
}

template <class Key>
void KeyedHeaps<Key>::insert(std::uint32_t heap, Entry entry) {
    STOKER_CHECK(!holds(entry.sample), "the sample is already in a heap");
    Entries& entries = heaps_[heap];
    STOKER_CHECK(entries.size() < kIndexMask, "the heap is full: an index must fit its bits");
    entries.push_back(entry);
    rise(heap, static_cast<std::uint32_t>(entries.size() - 1), entry);
}

template <class Key>
typename KeyedHeaps<Key>::Entry KeyedHeaps<Key>::remove(SampleIndex sample) {
    STOKER_CHECK(holds(sample), "the sample is in no heap");
    const std::uint32_t heap = heap_of(sample);
    const std::uint32_t index = locations_[sample] & kIndexMask;
    const Entry gone = heaps_[heap][index];
    const Entry last = take_last(heap);
    if (last.sample != sample) {
        locations_[sample] = kNowhere;
        settle(heap, index, last);
    }
    return gone;
}

template <class Key>
void KeyedHeaps<Key>::rekey(SampleIndex sample, Key key) {
    const std::uint32_t heap = heap_of(sample);
    const std::uint32_t index = locations_[sample] & kIndexMask;
    Entry entry = heaps_[heap][index];
    if (entry.key != key) {
        entry.key = key;
        settle(heap, index, entry);
    }
}

template <class Key>
typename KeyedHeaps<Key>::Entry KeyedHeaps<Key>::take_last(std::uint32_t heap) {
    const Entry last = heaps_[heap].back();
    heaps_[heap].pop_back();
    locations_[last.sample] = kNowhere;
    return last;
}

template <class Key>
KeyedHeaps<Key>::Ascent::Ascent(
    const KeyedHeaps& heaps,
    std::initializer_list<std::uint32_t> which,
    std::vector<Candidate>& candidates)
    : heaps_(heaps),
      candidates_(candidates) {
    candidates_.clear();
    for (const std::uint32_t heap : which) {
        offer(heap, 0);
    }
}

// Adds an entry's children to the walk only once the walk has passed the entry, which is rare.
template <class Key>
const typename KeyedHeaps<Key>::Entry* KeyedHeaps<Key>::Ascent::next() {
    for (std::uint32_t child = 1; has_current_ && child <= kChildren; ++child) {
        offer(current_.heap, kChildren * current_.index + child);
    }
    has_current_ = !candidates_.empty();
    if (!has_current_) {
        return nullptr;
    }
    std::pop_heap(candidates_.begin(), candidates_.end(), later);
    current_ = candidates_.back();
    candidates_.pop_back();
    return &current_.entry;
}

template <class Key>
void KeyedHeaps<Key>::Ascent::offer(std::uint32_t heap, std::uint32_t index) {
    const auto& entries = heaps_.entries(heap);
    if (index < entries.size()) {
        candidates_.push_back({entries[index], heap, index});
        std::push_heap(candidates_.begin(), candidates_.end(), later);
    }
}

template <class Key>
void KeyedHeaps<Key>::take_least(
    std::uint32_t heap,
    Bytes bytes,
    std::vector<Candidate>& candidates,
    std::vector<SampleIndex>& samples) const {
    const auto any = [](const Entry& /*entry*/) { return Choice::kTake; };
    Ascent(*this, {heap}, candidates).take(bytes, any, samples);
}

template class KeyedHeaps<std::uint32_t>;
template class KeyedHeaps<std::uint64_t>;
template class KeyedHeaps<ReadKey>;

}  // namespace stoker::sidecar
