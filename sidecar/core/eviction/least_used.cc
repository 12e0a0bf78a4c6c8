#include "sidecar/core/eviction/least_used.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Samples that may not go and are passed over, in one call at most.
constexpr std::size_t kPassedOverMax = 64;

}  // namespace

ReadKey& LeastUsed::key(SampleIndex sample) {
    if (sample >= keys_.size()) {
        keys_.resize(std::max<std::size_t>(std::size_t{sample} + 1, keys_.size() * 2));
        residents_.grow(static_cast<std::uint32_t>(keys_.size()));
    }
    return keys_[sample];
}

void LeastUsed::on_resident(SampleIndex sample, Bytes bytes) {
    key(sample).read_at = ++clock_;
    residents_.insert(0, {keys_[sample], sample, saturated(bytes)});
}

void LeastUsed::on_gone(SampleIndex sample) {
    key(sample);
    residents_.remove(sample);
}

void LeastUsed::on_read(SampleIndex sample, bool /*hit*/) {
    ReadKey& of_sample = key(sample);
    of_sample.reads += frequency_ && of_sample.reads < UINT32_MAX ? 1 : 0;
    touch(sample);
}

void LeastUsed::touch(SampleIndex sample) {
    keys_[sample].read_at = ++clock_;
    if (residents_.holds(sample)) {
        residents_.rekey(sample, keys_[sample]);
    }
}

bool LeastUsed::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    const std::uint32_t reads = key(incoming).reads;
    const std::size_t before = victims.size();
    std::vector<SampleIndex> passed_over;
    Bytes freed;
    Heap::Ascent ascent(residents_, {0}, candidates_);
    while (freed < needed && passed_over.size() <= kPassedOverMax) {
        const auto* entry = ascent.next();
        if (entry == nullptr || (frequency_ && entry->key.reads >= reads)) {
            break;
        }
        if (may_go(entry->sample)) {
            victims.push_back(entry->sample);
            freed += Bytes{entry->bytes};
        } else {
            passed_over.push_back(entry->sample);
        }
    }
    std::ranges::for_each(passed_over, [this](SampleIndex sample) { touch(sample); });
    if (freed < needed) {
        victims.resize(before);
        return false;
    }
    return true;
}

void LeastUsed::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    residents_.take_least(0, excess, candidates_, victims);
}

}  // namespace stoker::sidecar
