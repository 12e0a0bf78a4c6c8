#include "sidecar/core/eviction/lru.h"

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Samples that may not go and are passed over, in one call at most.
constexpr int kPassedOverMax = 64;

}  // namespace

Lru::Lru()
    : ring_(1) {}

void Lru::on_resident(SampleIndex sample, Bytes bytes) {
    const std::uint32_t place = sample + 1;
    if (place >= ring_.size()) {
        ring_.resize(std::size_t{place} + 1);
    }
    STOKER_CHECK(ring_[place].bytes == Bytes::zero(), "becomes resident only once");
    ring_[place].bytes = bytes;
    append(place);
}

void Lru::on_gone(SampleIndex sample) {
    const std::uint32_t place = sample + 1;
    STOKER_CHECK(
        place < ring_.size() && ring_[place].bytes > Bytes::zero(), "only a resident can go");
    take_out(place);
    ring_[place] = {};
}

void Lru::on_read(SampleIndex sample, bool /*hit*/) {
    const std::uint32_t place = sample + 1;
    if (place < ring_.size() && ring_[place].bytes > Bytes::zero()) {
        take_out(place);
        append(place);
    }
}

bool Lru::make_room(
    SampleIndex /*incoming*/,
    Bytes needed,
    const MayGo& may_go,
    std::vector<SampleIndex>& victims) {
    const std::size_t before = victims.size();
    Bytes freed;
    int passed_over = 0;
    for (std::uint32_t place = ring_[0].newer; freed < needed;) {
        if (place == 0 || passed_over > kPassedOverMax) {
            victims.resize(before);
            return false;
        }
        const std::uint32_t next = ring_[place].newer;
        if (may_go(place - 1)) {
            victims.push_back(place - 1);
            freed += ring_[place].bytes;
        } else {
            ++passed_over;
            take_out(place);
            append(place);
        }
        place = next;
    }
    return true;
}

void Lru::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    Bytes freed;
    for (std::uint32_t place = ring_[0].newer; place != 0 && freed < excess;
         place = ring_[place].newer) {
        victims.push_back(place - 1);
        freed += ring_[place].bytes;
    }
}

// Behind all others: read just now.
void Lru::append(std::uint32_t place) {
    const std::uint32_t newest = ring_[0].older;
    ring_[place].older = newest;
    ring_[place].newer = 0;
    ring_[newest].newer = place;
    ring_[0].older = place;
}

void Lru::take_out(std::uint32_t place) {
    ring_[ring_[place].older].newer = ring_[place].newer;
    ring_[ring_[place].newer].older = ring_[place].older;
}

}  // namespace stoker::sidecar
