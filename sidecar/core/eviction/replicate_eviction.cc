#include "sidecar/core/eviction/replicate_eviction.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Residents that make_room() examines before it gives up; clients may hold all of them.
constexpr int kLooksMax = 256;

constexpr std::uint32_t kReadBits = 12;
constexpr std::uint32_t kReadsMax = (1U << kReadBits) - 1;
constexpr float kScoreMax = 32;
constexpr std::uint32_t kScoreSteps = (1U << (32 - kReadBits)) - 1;

std::uint32_t steps_of(float score) {
    return static_cast<std::uint32_t>(
        std::clamp(score / kScoreMax, 0.0F, 1.0F) * static_cast<float>(kScoreSteps));
}

}  // namespace

ReplicateEviction::ReplicateEviction(std::uint32_t count)
    : ghosts_(count),
      queue_(count) {}

ReplicateEviction::Key& ReplicateEviction::ghost(SampleIndex sample) {
    if (sample >= ghosts_.size()) {
        ghosts_.resize(std::max<std::size_t>(std::size_t{sample} + 1, ghosts_.size() * 2));
        queue_.grow(static_cast<std::uint32_t>(ghosts_.size()));
    }
    return ghosts_[sample];
}

void ReplicateEviction::on_resident(SampleIndex sample, Bytes bytes) {
    const Key key = ghost(sample);
    if (!queue_.holds(sample)) {
        queue_.insert(0, {key, sample, saturated(bytes)});
    }
}

void ReplicateEviction::on_gone(SampleIndex sample) {
    ghost(sample);
    if (queue_.holds(sample)) {
        queue_.remove(sample);
    }
}

void ReplicateEviction::on_read(SampleIndex sample, bool /*hit*/) {
    const Key key = ghost(sample);
    set_key(sample, (key & kReadsMax) == kReadsMax ? key : key + 1);
}

void ReplicateEviction::on_score(SampleIndex sample, float score) {
    const Key reads = ghost(sample) & kReadsMax;
    set_key(sample, (steps_of(score) << kReadBits) | reads);
}

void ReplicateEviction::set_key(SampleIndex sample, Key key) {
    ghosts_[sample] = key;
    if (queue_.holds(sample)) {
        queue_.rekey(sample, key);
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

bool ReplicateEviction::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    using Choice = ImportanceHeaps::Choice;
    int looks = kLooksMax;
    const auto choose = [&, worth = ghost(incoming)](const ImportanceHeaps::Entry& entry) {
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
