#include "sidecar/core/eviction/least_used.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Residents that may not be evicted now and that one call may skip.
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
    std::vector<SampleIndex> passed_over;
    const auto choose = [&](const Heap::Entry& entry) {
        if (passed_over.size() > kPassedOverMax || (frequency_ && entry.key.reads >= reads)) {
            return Heap::Choice::kStop;
        }
        if (may_go(entry.sample)) {
            return Heap::Choice::kTake;
        }
        passed_over.push_back(entry.sample);
        return Heap::Choice::kPassOver;
    };
    const bool made = Heap::Ascent(residents_, {0}, candidates_).take_all(needed, choose, victims);
    std::ranges::for_each(passed_over, [this](SampleIndex sample) { touch(sample); });
    return made;
}

void LeastUsed::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    residents_.take_least(0, excess, candidates_, victims);
}

}  // namespace stoker::sidecar
