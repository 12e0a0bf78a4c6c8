#include "sidecar/core/eviction/lfu.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Samples that may not go and are passed over, in one call at most.
constexpr std::size_t kPassedOverMax = 64;

}  // namespace

void Lfu::on_resident(SampleIndex sample, Bytes bytes) {
    Entry& of_sample = entry(sample);
    STOKER_CHECK(of_sample.heap_at == 0, "becomes resident only once");
    of_sample.bytes = bytes;
    of_sample.read_at = ++clock_;
    push(sample);
}

void Lfu::on_gone(SampleIndex sample) {
    STOKER_CHECK(entry(sample).heap_at > 0, "only a resident can go");
    remove_at(entry(sample).heap_at - 1);
}

void Lfu::on_read(SampleIndex sample, bool /*hit*/) {
    Entry& of_sample = entry(sample);
    of_sample.reads += static_cast<std::uint32_t>(of_sample.reads < UINT32_MAX);
    of_sample.read_at = ++clock_;
    if (of_sample.heap_at > 0) {
        sift_down(of_sample.heap_at - 1);
    }
}

bool Lfu::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    const std::uint32_t reads = entry(incoming).reads;
    const std::size_t before = victims.size();
    std::vector<SampleIndex> passed_over;
    Bytes freed;
    while (freed < needed && !heap_.empty() && passed_over.size() < kPassedOverMax &&
           entries_[heap_.front()].reads < reads) {
        const SampleIndex sample = heap_.front();
        remove_at(0);
        if (may_go(sample)) {
            victims.push_back(sample);
            freed += entries_[sample].bytes;
        } else {
            passed_over.push_back(sample);
        }
    }
    std::for_each(
        victims.begin() + static_cast<std::ptrdiff_t>(before), victims.end(), [this](auto sample) {
            push(sample);
        });
    for (const SampleIndex sample : passed_over) {
        entries_[sample].read_at = ++clock_;
        push(sample);
    }
    if (freed < needed) {
        victims.resize(before);
        return false;
    }
    return true;
}

void Lfu::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    std::vector<SampleIndex> residents = heap_;
    std::ranges::sort(residents, [this](auto a, auto b) { return goes_before(a, b); });
    Bytes freed;
    for (auto next = residents.begin(); next != residents.end() && freed < excess; ++next) {
        victims.push_back(*next);
        freed += entries_[*next].bytes;
    }
}

Lfu::Entry& Lfu::entry(SampleIndex sample) {
    if (sample >= entries_.size()) {
        entries_.resize(std::size_t{sample} + 1);
    }
    return entries_[sample];
}

bool Lfu::goes_before(SampleIndex a, SampleIndex b) const {
    return std::tuple{entries_[a].reads, entries_[a].read_at, a} <
           std::tuple{entries_[b].reads, entries_[b].read_at, b};
}

void Lfu::push(SampleIndex sample) {
    heap_.push_back(sample);
    put(heap_.size() - 1, sample);
    sift_up(heap_.size() - 1);
}

void Lfu::remove_at(std::size_t at) {
    entries_[heap_[at]].heap_at = 0;
    const SampleIndex last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) {
        return;
    }
    put(at, last);
    sift_down(at);
    sift_up(entries_[last].heap_at - 1);
}

void Lfu::sift_up(std::size_t at) {
    const SampleIndex sample = heap_[at];
    while (at > 0 && goes_before(sample, heap_[(at - 1) / 2])) {
        put(at, heap_[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, sample);
}

void Lfu::sift_down(std::size_t at) {
    const SampleIndex sample = heap_[at];
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
        if (child + 1 < heap_.size() && goes_before(heap_[child + 1], heap_[child])) {
            ++child;
        }
        if (!goes_before(heap_[child], sample)) {
            break;
        }
        put(at, heap_[child]);
        at = child;
    }
    put(at, sample);
}

void Lfu::put(std::size_t at, SampleIndex sample) {
    heap_[at] = sample;
    entries_[sample].heap_at = static_cast<std::uint32_t>(at + 1);
}

}  // namespace stoker::sidecar
