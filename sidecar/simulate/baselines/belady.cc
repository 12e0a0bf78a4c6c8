#include "sidecar/simulate/baselines/belady.h"

namespace stoker::simulate {

Belady::Belady(std::uint64_t samples, OrderOf order_of)
    : order_of_(std::move(order_of)),
      samples_(samples),
      this_epoch_(samples),
      next_epoch_(samples),
      next_use_(samples),
      bytes_(samples) {
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

bool Belady::is_current(const Use& use) const {
    return bytes_[use.second] > Bytes{} && next_use_[use.second] == use.first;
}

void Belady::on_resident(SampleIndex sample, Bytes bytes) {
    bytes_[sample] = bytes;
    farthest_.emplace(next_use_[sample], sample);
}

void Belady::on_gone(SampleIndex sample) {
    bytes_[sample] = Bytes{};
}

void Belady::on_read(SampleIndex sample, bool /*hit*/) {
    next_use_[sample] = next_epoch_[sample];
    if (bytes_[sample] > Bytes{}) {
        farthest_.emplace(next_use_[sample], sample);
    }
    if (++reads_ % samples_ == 0) {
        begin_epoch(reads_ / samples_);
    }
}

bool Belady::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    // It is about to be read; what counts is the read after that.
    const std::uint64_t incoming_use = next_epoch_[incoming];
    std::vector<Use> looked_at;
    Bytes room{};
    while (room < needed && !farthest_.empty()) {
        const Use use = farthest_.top();
        if (is_current(use) && use.first <= incoming_use) {
            break;
        }
        farthest_.pop();
        if (is_current(use)) {
            looked_at.push_back(use);
            if (may_go(use.second)) {
                room += bytes_[use.second];
                victims.push_back(use.second);
            }
        }
    }
    for (const Use& use : looked_at) {
        farthest_.push(use);
    }
    if (room < needed) {
        victims.clear();
        return false;
    }
    return true;
}

void Belady::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    auto uses = farthest_;
    for (Bytes room{}; room < excess && !uses.empty(); uses.pop()) {
        const Use use = uses.top();
        if (is_current(use)) {
            room += bytes_[use.second];
            victims.push_back(use.second);
        }
    }
}

}  // namespace stoker::simulate
