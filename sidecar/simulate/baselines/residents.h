#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

namespace stoker::simulate {

using domain::SampleIndex;

// A set of samples with a random member in O(1). 8 bytes per sample. Not thread-safe.
class Residents {
public:
    explicit Residents(std::uint64_t samples)
        : slot_(samples, kNone) {}

    [[nodiscard]] bool contains(SampleIndex sample) const { return slot_[sample] != kNone; }

    [[nodiscard]] std::size_t size() const { return members_.size(); }

    void add(SampleIndex sample) {
        slot_[sample] = static_cast<std::uint32_t>(members_.size());
        members_.push_back(sample);
    }

    void remove(SampleIndex sample) {
        const SampleIndex last = members_.back();
        members_[slot_[sample]] = last;
        slot_[last] = slot_[sample];
        members_.pop_back();
        slot_[sample] = kNone;
    }

    // Precondition: the set is not empty.
    [[nodiscard]] SampleIndex random(Prng& prng) const {
        return members_[prng.below(members_.size())];
    }

private:
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    std::vector<std::uint32_t> slot_;
    std::vector<SampleIndex> members_;
};

}  // namespace stoker::simulate
