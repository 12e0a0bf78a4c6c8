#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// 64 bits that near-duplicates nearly share: the fewer bits differ, the more alike. Clients make
// them, by any locality-sensitive hash (`stoker.similarity`).
using Fingerprint = std::uint64_t;

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

    // The same of a dataset of which not all is known: `known` says whose fingerprints count, one
    // flag each. What `before` held together stays together. In each band a sample is compared with
    // the next `looks` only, so that very many alike cost no square of time.
    RedundancyGroups(
        std::span<const Fingerprint> fingerprints,
        std::uint32_t threshold,
        const std::vector<bool>& known,
        const RedundancyGroups& before,
        std::uint32_t looks);

    // A copy and what stands for its group.
    using Copy = std::pair<SampleIndex, SampleIndex>;

    // Groups of `count` samples as copies() gave them; samples beyond `count` are left out.
    static RedundancyGroups of(std::uint32_t count, std::span<const Copy> copies);

    [[nodiscard]] std::vector<Copy> copies() const;

    // The samples alike, itself among them, ascending; empty for samples beyond the fingerprints.
    [[nodiscard]] std::span<const SampleIndex> group_of(SampleIndex sample) const;

    // The lowest of its group stands for all.
    [[nodiscard]] bool is_copy(SampleIndex sample) const {
        return sample < first_.size() && members_[first_[sample]] != sample;
    }

    [[nodiscard]] bool empty() const { return members_.empty(); }

private:
    class Sets;

    void arrange(Sets& sets);

    std::vector<std::uint32_t> first_;  // by sample: where its group begins in members_
    std::vector<SampleIndex> members_;  // group by group
};

}  // namespace stoker::sidecar
