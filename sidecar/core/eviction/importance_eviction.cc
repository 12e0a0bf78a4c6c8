#include "sidecar/core/eviction/importance_eviction.h"

#include <bit>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kUnimportant = 2;  // the heap of the L-region

// The key of a sample in the L-region (importance_eviction.h) is a running number of its arrival;
// this bit is set until the sample is read.
constexpr std::uint32_t kUnread = 1U << 31U;
constexpr std::uint32_t kAnyKey = ~0U;

// Residents that may not be evicted now and that one call may skip.
constexpr std::uint32_t kPassedOverMax = 1024;

}  // namespace

// Takes the entry as a victim. False: the victims suffice, no more are required.
bool ImportanceEviction::Room::take(const Entry& entry) {
    victims.push_back(entry.sample);
    freed += Bytes{entry.bytes};
    return freed < needed;
}

ImportanceEviction::ImportanceEviction(
    std::uint32_t count, const ImportanceValues& values, const Settings& settings)
    : values_(values),
      settings_(settings),
      heaps_(count) {
    STOKER_CHECK(settings.migrate > 0, "`migrate` must be at least 1, or a refresh never ends");
}

// The value's bit pattern: those of non-negative floats sort like the values themselves.
std::uint32_t ImportanceEviction::key_of(SampleIndex sample) const {
    const float value = values_.value(sample);
    STOKER_CHECK(value >= 0, "a value must be a number >= 0");
    return std::bit_cast<std::uint32_t>(value + 0.0F);
}

Bytes ImportanceEviction::share_of(Bytes total) const {
    return Bytes{
        static_cast<std::uint64_t>(static_cast<double>(total.count()) * settings_.l_share)};
}

bool ImportanceEviction::is_spent(const Entry& entry) const {
    return (entry.key & kUnread) == 0 || (entry.key & ~kUnread) < old_before_;
}

void ImportanceEviction::on_resident(SampleIndex sample, Bytes bytes) {
    migrate(settings_.migrate);
    const std::uint32_t size = saturated(bytes);
    resident_bytes_ += Bytes{size};
    if (values_.unimportant(sample)) {
        unimportant_bytes_ += Bytes{size};
        heaps_.insert(kUnimportant, {kUnread | (arrivals_++ & ~kUnread), sample, size});
    } else {
        heaps_.insert(migrating_ ? shadow_ : main_, {key_of(sample), sample, size});
    }
}

void ImportanceEviction::on_gone(SampleIndex sample) {
    const bool unimportant = heaps_.holds(sample) && heaps_.heap_of(sample) == kUnimportant;
    const Entry gone = heaps_.remove(sample);
    resident_bytes_ -= Bytes{gone.bytes};
    if (unimportant) {
        unimportant_bytes_ -= Bytes{gone.bytes};
    }
}

void ImportanceEviction::on_read(SampleIndex sample, bool /*hit*/) {
    migrate(settings_.migrate);
    if (!heaps_.holds(sample) || heaps_.heap_of(sample) != kUnimportant) {
        return;
    }
    const Entry entry = heaps_.entry(sample);
    heaps_.rekey(sample, entry.key & ~kUnread);
}

void ImportanceEviction::refresh() {
    old_before_ = arrivals_ & ~kUnread;
    if (migrating_) {
        migrate_again_ = true;
        return;
    }
    migrating_ = true;
}

// Moves up to `count` residents to the shadow heap, with their current values.
void ImportanceEviction::migrate(std::uint32_t count) {
    if (!migrating_) {
        return;
    }
    for (; count > 0 && !heaps_.entries(main_).empty(); --count) {
        Entry entry = heaps_.take_last(main_);
        entry.key = key_of(entry.sample);
        heaps_.insert(shadow_, entry);
    }
    if (heaps_.entries(main_).empty()) {
        std::swap(main_, shadow_);
        migrating_ = std::exchange(migrate_again_, false);
    }
}

void ImportanceEviction::expect(std::span<const SampleIndex> samples) const {
    values_.expect(samples);
    for (const SampleIndex sample : samples) {
        heaps_.expect(sample);
    }
}

bool ImportanceEviction::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    migrate(settings_.migrate);
    if (held_) {
        return false;
    }
    const std::size_t before = victims.size();
    Room room{.needed = needed, .may_go = may_go, .victims = victims};
    const bool made = values_.unimportant(incoming) ? room_for_unimportant(room)
                                                    : room_for_important(incoming, room);
    if (!made) {
        victims.resize(before);
    }
    return made;
}

// Evicts the L-region's excess over its share first.
bool ImportanceEviction::room_for_important(SampleIndex incoming, Room& room) {
    return take_unimportant(room, share_of(resident_bytes_), false) ||
           take_important(room, key_of(incoming));
}

bool ImportanceEviction::room_for_unimportant(Room& room) {
    if (unimportant_bytes_ + room.needed <= share_of(resident_bytes_)) {
        return take_important(room, kAnyKey);
    }
    return take_unimportant(room, Bytes::zero(), true);
}

// Takes victims from the H-region whose key is lower than `below`. True: the room suffices.
bool ImportanceEviction::take_important(Room& room, std::uint32_t below) {
    ImportanceHeaps::Ascent ascent(heaps_, {main_, shadow_}, candidates_);
    std::uint32_t passed_over = 0;
    while (const Entry* entry = ascent.next()) {
        if (entry->key >= below || passed_over > kPassedOverMax) {
            return false;
        }
        if (!room.may_go(entry->sample)) {
            ++passed_over;
        } else if (!room.take(*entry)) {
            return true;
        }
    }
    return false;
}

// Takes victims from the L-region until it has shrunk to `down_to`. True: the room suffices.
bool ImportanceEviction::take_unimportant(Room& room, Bytes down_to, bool spent_only) {
    ImportanceHeaps::Ascent ascent(heaps_, {kUnimportant}, candidates_);
    Bytes left = unimportant_bytes_;
    std::uint32_t passed_over = 0;
    while (left > down_to) {
        const Entry* entry = ascent.next();
        if (entry == nullptr || (spent_only && !is_spent(*entry)) || passed_over > kPassedOverMax) {
            return false;
        }
        if (!room.may_go(entry->sample)) {
            ++passed_over;
            continue;
        }
        left -= Bytes{entry->bytes};
        if (!room.take(*entry)) {
            return true;
        }
    }
    return false;
}

// Both regions shrink by the same amount; the L-region covers the part that the H-region cannot.
void ImportanceEviction::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    if (excess == Bytes::zero()) {
        return;
    }
    const std::size_t before = victims.size();
    const MayGo anybody = [](SampleIndex /*sample*/) { return true; };
    Room room{.needed = excess, .may_go = anybody, .victims = victims};
    if (take_unimportant(room, share_of(resident_bytes_ - excess), false) ||
        take_important(room, kAnyKey)) {
        return;
    }
    victims.resize(before);
    room.freed = Bytes::zero();
    if (!take_unimportant(room, Bytes::zero(), false)) {
        take_important(room, kAnyKey);
    }
}

}  // namespace stoker::sidecar
