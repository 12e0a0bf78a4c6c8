#include "sidecar/simulate/baselines/belady.h"

namespace stoker::simulate {

Belady::Belady(std::uint64_t samples, OrderOf order_of)
    : order_of_(std::move(order_of)),
      samples_(samples),
      this_epoch_(samples),
      next_epoch_(samples),
      next_use_(samples),
      farthest_(static_cast<std::uint32_t>(samples)) {
    index(0, next_epoch_);
    begin_epoch(0);
    next_use_ = this_epoch_;
}

void Belady::index(std::uint64_t epoch, std::vector<std::uint64_t>& positions) const {
    std::uint64_t position = epoch * samples_;
    for (const SampleIndex sample : order_of_(epoch)) {
        positions[sample] = position++;
    }
}

void Belady::begin_epoch(std::uint64_t epoch) {
    std::swap(this_epoch_, next_epoch_);
    index(epoch + 1, next_epoch_);
}

void Belady::on_resident(SampleIndex sample, Bytes bytes) {
    farthest_.insert(0, {~next_use_[sample], sample, sidecar::saturated(bytes)});
}

void Belady::on_gone(SampleIndex sample) {
    farthest_.remove(sample);
}

void Belady::on_read(SampleIndex sample, bool /*hit*/) {
    next_use_[sample] = next_epoch_[sample];
    if (farthest_.holds(sample)) {
        farthest_.rekey(sample, ~next_use_[sample]);
    }
    if (++reads_ % samples_ == 0) {
        begin_epoch(reads_ / samples_);
    }
}

bool Belady::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    // The sample is about to be read; its value depends on the read after that.
    const std::uint64_t incoming_use = next_epoch_[incoming];
    const auto choose = [&](const Heap::Entry& entry) {
        if (entry.key >= ~incoming_use) {
            return Heap::Choice::kStop;
        }
        return may_go(entry.sample) ? Heap::Choice::kTake : Heap::Choice::kPassOver;
    };
    return Heap::Ascent(farthest_, {0}, candidates_).take_all(needed, choose, victims);
}

void Belady::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    farthest_.take_least(0, excess, candidates_, victims);
}

}  // namespace stoker::simulate
