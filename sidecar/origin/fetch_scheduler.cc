#include "sidecar/origin/fetch_scheduler.h"

#include <algorithm>

#include "common/base/check.h"

namespace stoker::sidecar {

FetchScheduler::FetchScheduler(SchedulerLimits limits)
    : limits_(limits) {
    set_requests_max(limits.requests_max);
    STOKER_CHECK(limits_.part_bytes.count() > 0, "a part must have at least one byte");
}

void FetchScheduler::set_requests_max(std::uint32_t requests_max) {
    limits_.requests_max = std::max(requests_max, 2U);
}

bool FetchScheduler::is_large(std::uint64_t size_bytes) const {
    return size_bytes > limits_.large_object_bytes.count();
}

std::uint32_t FetchScheduler::part_count(std::uint64_t size_bytes) const {
    if (!is_large(size_bytes)) {
        return 1;
    }
    const std::uint64_t part = limits_.part_bytes.count();
    return static_cast<std::uint32_t>((size_bytes + part - 1) / part);
}

void FetchScheduler::add(FetchId id, std::uint64_t size_bytes) {
    const bool is_new = objects_.emplace(id, Object{size_bytes}).second;
    STOKER_CHECK(is_new, "the fetch was added already");
    (is_large(size_bytes) ? large_ : small_).waiting.push_back(id);
}

bool FetchScheduler::has_room(const Lane& lane, std::uint64_t size_bytes) const {
    return lane.objects == 0 ||
           lane.bytes + Bytes{size_bytes} <= Bytes{limits_.bytes_max.count() / 2};
}

// Slots reserved for large objects while both lanes have work.
std::size_t FetchScheduler::large_share() const {
    return std::clamp<std::size_t>(limits_.requests_max / 4, 1, 16);
}

// Slots for large objects while no small one waits. Never all slots: requests of large objects are
// long, and small objects may come at any moment.
std::size_t FetchScheduler::large_alone() const {
    return std::max<std::size_t>(limits_.requests_max / 2, 1);
}

void FetchScheduler::activate(Lane& lane, Object& object) {
    object.active = true;
    ++lane.objects;
    lane.bytes += Bytes{object.size_bytes};
}

void FetchScheduler::drop_removed(Lane& lane) const {
    while (!lane.waiting.empty() && !objects_.contains(lane.waiting.front())) {
        lane.waiting.pop_front();
    }
}

std::optional<FetchScheduler::Part> FetchScheduler::next() {
    if (running_requests() >= limits_.requests_max) {
        return std::nullopt;
    }
    drop_removed(small_);
    drop_removed(large_);
    const bool small_about = !small_.waiting.empty() || small_.requests > 0;
    const std::size_t large_max = small_about ? large_share() : large_alone();
    if (large_.requests < large_max) {
        if (auto part = next_large()) {
            return part;
        }
    }
    const bool large_about = !cutting_.empty() || large_.requests > 0;
    const std::size_t small_max = limits_.requests_max - (large_about ? large_share() : 0);
    return small_.requests < small_max ? next_small() : std::nullopt;
}

std::optional<FetchScheduler::Part> FetchScheduler::next_small() {
    if (small_.waiting.empty()) {
        return std::nullopt;
    }
    const FetchId id = small_.waiting.front();
    Object& object = objects_.at(id);
    if (!has_room(small_, object.size_bytes)) {
        return std::nullopt;
    }
    small_.waiting.pop_front();
    activate(small_, object);
    ++small_.requests;
    return Part{id, std::nullopt, true};
}

std::optional<FetchScheduler::Part> FetchScheduler::next_large() {
    while (!cutting_.empty() && !objects_.contains(cutting_.front())) {
        cutting_.pop_front();
    }
    bool first = false;
    if (cutting_.empty()) {
        if (large_.waiting.empty() ||
            !has_room(large_, objects_.at(large_.waiting.front()).size_bytes)) {
            return std::nullopt;
        }
        cutting_.push_back(large_.waiting.front());
        large_.waiting.pop_front();
        activate(large_, objects_.at(cutting_.front()));
        first = true;
    }
    const FetchId id = cutting_.front();
    Object& object = objects_.at(id);
    const std::uint64_t length =
        std::min(limits_.part_bytes.count(), object.size_bytes - object.next_offset);
    const Part part{id, ByteRange{object.next_offset, length}, first};
    object.next_offset += length;
    if (object.next_offset == object.size_bytes) {
        cutting_.pop_front();
    }
    ++large_.requests;
    return part;
}

void FetchScheduler::part_ended(std::uint64_t size_bytes) {
    Lane& lane = is_large(size_bytes) ? large_ : small_;
    STOKER_CHECK(lane.requests > 0, "a request has ended more often than it started");
    --lane.requests;
}

void FetchScheduler::remove(FetchId id) {
    const auto found = objects_.find(id);
    if (found == objects_.end()) {
        return;
    }
    if (found->second.active) {
        Lane& lane = is_large(found->second.size_bytes) ? large_ : small_;
        --lane.objects;
        lane.bytes -= Bytes{found->second.size_bytes};
    }
    objects_.erase(found);
}

}  // namespace stoker::sidecar
