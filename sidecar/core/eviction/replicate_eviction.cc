#include "sidecar/core/eviction/replicate_eviction.h"

#include <algorithm>
#include <utility>

namespace stoker::sidecar {

namespace {

// Residents that make_room() examines before it gives up, because clients may hold all of them.
constexpr int kLooksMax = 256;

constexpr std::uint32_t kReadBits = 12;
constexpr std::uint32_t kReadsMax = (1U << kReadBits) - 1;
constexpr float kScoreMax = 32;
constexpr std::uint32_t kWillBeRead = 1U << 31U;
constexpr std::uint32_t kScoreSteps = (1U << (31 - kReadBits)) - 1;

std::uint32_t steps_of(float score) {
    return static_cast<std::uint32_t>(
        std::clamp(score / kScoreMax, 0.0F, 1.0F) * static_cast<float>(kScoreSteps));
}

}  // namespace

ReplicateEviction::ReplicateEviction(std::uint32_t count, std::shared_ptr<const ReadsLeft> left)
    : left_(std::move(left)),
      counted_(left_ == nullptr ? 0 : count),
      ghosts_(count),
      queue_(count) {}

std::uint32_t ReplicateEviction::left(SampleIndex sample) const {
    return sample < counted_ ? left_->of(sample) : 0;
}

ReplicateEviction::Key ReplicateEviction::key(SampleIndex sample) const {
    return ghosts_[sample] | (left(sample) > 0 ? kWillBeRead : 0);
}

ReplicateEviction::Key& ReplicateEviction::ghost(SampleIndex sample) {
    if (sample >= ghosts_.size()) {
        ghosts_.resize(std::max<std::size_t>(std::size_t{sample} + 1, ghosts_.size() * 2));
        queue_.grow(static_cast<std::uint32_t>(ghosts_.size()));
    }
    return ghosts_[sample];
}

void ReplicateEviction::on_resident(SampleIndex sample, Bytes bytes) {
    ghost(sample);
    if (!queue_.holds(sample)) {
        queue_.insert(0, {key(sample), sample, saturated(bytes)});
    }
}

void ReplicateEviction::on_gone(SampleIndex sample) {
    ghost(sample);
    if (queue_.holds(sample)) {
        queue_.remove(sample);
    }
}

void ReplicateEviction::on_read(SampleIndex sample, bool /*hit*/) {
    const Key old = ghost(sample);
    set_ghost(sample, (old & kReadsMax) == kReadsMax ? old : old + 1);
}

void ReplicateEviction::on_score(SampleIndex sample, float score) {
    const Key reads = ghost(sample) & kReadsMax;
    set_ghost(sample, (steps_of(score) << kReadBits) | reads);
}

void ReplicateEviction::set_ghost(SampleIndex sample, Key ghost) {
    ghosts_[sample] = ghost;
    if (queue_.holds(sample)) {
        queue_.rekey(sample, key(sample));
    }
}

void ReplicateEviction::refresh() {
    for (SampleIndex sample = 0; sample < ghosts_.size(); ++sample) {
        if (queue_.holds(sample)) {
            queue_.rekey(sample, key(sample));
        }
    }
}

void ReplicateEviction::expect(std::span<const SampleIndex> samples) const {
    for (const SampleIndex sample : samples) {
        if (sample < ghosts_.size()) {
            __builtin_prefetch(&ghosts_[sample], 1);
            queue_.expect(sample);
        }
    }
}

// The incoming sample has at least one read left: the one that it is fetched for. Only further
// reads count.
bool ReplicateEviction::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    using Choice = ImportanceHeaps::Choice;
    int looks = kLooksMax;
    const Key worth = left(incoming) > 1 ? kWillBeRead : ghost(incoming);
    const auto choose = [&](const ImportanceHeaps::Entry& entry) {
        if (looks-- == 0 || entry.key >= worth) {
            return Choice::kStop;
        }
        return may_go(entry.sample) ? Choice::kTake : Choice::kPassOver;
    };
    return ImportanceHeaps::Ascent(queue_, {0}, candidates_).take_all(needed, choose, victims);
}

void ReplicateEviction::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    queue_.take_least(0, excess, candidates_, victims);
}

}  // namespace stoker::sidecar
