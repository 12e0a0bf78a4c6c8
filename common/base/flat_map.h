#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace stoker {

// A hash map from 32-bit keys below 2^32 - 1 to small values, in one array, which never shrinks; at
// least half of the array is free. A look-up touches one cache line in most cases; look-up and
// erase() allocate nothing. Equal histories give equal orders of entries. Pointers and references
// are valid until the next non-const call. Not thread-safe.
template <class Value>
class FlatMap {
public:
    using Key = std::uint32_t;

    [[nodiscard]] std::size_t size() const { return size_; }

    // Finds or adds the key's entry; a new entry has the value Value{}.
    Value& operator[](Key key) {
        if (2 * (size_ + 1) > slots_.size()) {
            grow();
        }
        Slot& slot = slots_[find_slot(key)];
        if (slot.key == kFree) {
            slot = {key, Value{}};
            ++size_;
        }
        return slot.value;
    }

    // The value of the key; nullptr: it has no entry.
    [[nodiscard]] Value* find(Key key) {
        if (slots_.empty()) {
            return nullptr;
        }
        Slot& slot = slots_[find_slot(key)];
        return slot.key == kFree ? nullptr : &slot.value;
    }

    // Removes the entry, which must exist.
    void erase(Key key) {
        std::size_t hole = find_slot(key);
        // Moves a later entry into the hole if its look-up would otherwise end at the hole.
        for (std::size_t at = next(hole); slots_[at].key != kFree; at = next(at)) {
            const std::size_t home = home_of(slots_[at].key);
            if (((at - home) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole].key = kFree;
        --size_;
    }

    void clear() {
        slots_.clear();
        size_ = 0;
    }

    // Calls visit(key, value) for every entry.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const Slot& slot : slots_) {
            if (slot.key != kFree) {
                visit(slot.key, slot.value);
            }
        }
    }

private:
    static constexpr Key kFree = std::numeric_limits<Key>::max();
    static constexpr std::size_t kSlotsMin = 16;

    struct Slot {
        Key key = kFree;
        Value value{};
    };

    [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

    [[nodiscard]] std::size_t next(std::size_t slot) const { return (slot + 1) & mask(); }

    [[nodiscard]] std::size_t home_of(Key key) const {
        return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 32U) & mask();
    }

    // The slot that holds the key, or the free slot where the key would be added.
    [[nodiscard]] std::size_t find_slot(Key key) const {
        std::size_t slot = home_of(key);
        while (slots_[slot].key != key && slots_[slot].key != kFree) {
            slot = next(slot);
        }
        return slot;
    }

    void grow() {
        const std::vector<Slot> old = std::exchange(
            slots_, std::vector<Slot>(slots_.empty() ? kSlotsMin : 2 * slots_.size()));
        for (const Slot& slot : old) {
            if (slot.key != kFree) {
                slots_[find_slot(slot.key)] = slot;
            }
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

}  // namespace stoker
