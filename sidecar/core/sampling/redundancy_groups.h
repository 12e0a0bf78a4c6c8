#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/domain/ids.h"
#include "sidecar/core/sampling/perceptual_hash.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Which samples of a dataset are near-duplicates of one another (IOWA's redundancy groups). Two
// samples whose fingerprints differ in at most `threshold` bits share a group, and so on from one
// to the next. Immutable; 8 bytes a sample.
class RedundancyGroups {
public:
    // Nobody has a duplicate.
    RedundancyGroups() = default;

    // One fingerprint a sample. Exact: equal fingerprints are put together first, then each is
    // compared with those that agree in one of threshold+1 bands of bits, of which near ones share
    // one at least. `threshold` below 64. Nearly O(n log n), unless very many differ in few bits.
    RedundancyGroups(std::span<const Fingerprint> fingerprints, std::uint32_t threshold);

    // The samples alike, itself among them, ascending; empty for samples beyond the fingerprints.
    [[nodiscard]] std::span<const SampleIndex> group_of(SampleIndex sample) const;

    // The lowest of its group stands for all.
    [[nodiscard]] bool is_copy(SampleIndex sample) const {
        const auto group = group_of(sample);
        return !group.empty() && group.front() != sample;
    }

    [[nodiscard]] bool empty() const { return members_.empty(); }

private:
    std::vector<std::uint32_t> first_;  // by sample: where its group begins in members_
    std::vector<SampleIndex> members_;  // group by group
};

}  // namespace stoker::sidecar
