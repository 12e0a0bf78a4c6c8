#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// A 64-bit fingerprint: the fewer bits differ, the more alike two samples are. Clients compute it
// with any locality-sensitive hash (`stoker.similarity`).
using Fingerprint = std::uint64_t;

// Groups of near-duplicate samples (IOWA's redundancy groups). Samples whose fingerprints differ in
// at most `threshold` bits share a group, transitively. Immutable; 8 bytes per sample.
class RedundancyGroups {
public:
    // Makes no groups: no sample has a near-duplicate.
    RedundancyGroups() = default;

    // One fingerprint per sample. Exact: joins equal fingerprints first, then compares each with
    // those that agree in one of threshold+1 bands of bits; near-duplicates agree in at least one.
    // `threshold` below 64. Nearly O(n log n), unless very many differ in few bits.
    RedundancyGroups(std::span<const Fingerprint> fingerprints, std::uint32_t threshold);

    // Groups from partly known fingerprints: `known` has one flag per sample. Samples that `before`
    // grouped stay together. In each band a sample is compared with the next `looks` only, so that
    // very many near-duplicates do not take quadratic time.
    RedundancyGroups(
        std::span<const Fingerprint> fingerprints,
        std::uint32_t threshold,
        const std::vector<bool>& known,
        const RedundancyGroups& before,
        std::uint32_t looks);

    // A copy, and the sample that represents its group.
    using Copy = std::pair<SampleIndex, SampleIndex>;

    // Restores groups of `count` samples from the result of copies(); ignores samples beyond
    // `count`.
    static RedundancyGroups of(std::uint32_t count, std::span<const Copy> copies);

    [[nodiscard]] std::vector<Copy> copies() const;

    // All members of the sample's group, itself included, ascending; empty for samples without a
    // fingerprint.
    [[nodiscard]] std::span<const SampleIndex> group_of(SampleIndex sample) const;

    // Whether the sample is not the lowest member of its group; the lowest represents the group.
    [[nodiscard]] bool is_copy(SampleIndex sample) const {
        return sample < first_.size() && members_[first_[sample]] != sample;
    }

    // Calls visit(span of samples) for each group, where a group of more than `most` members is cut
    // into several spans; each sample is in one span. Members ascend. O(n).
    template <class Visit>
    void each_part(std::uint32_t most, const Visit& visit) const {
        for (std::size_t begin = 0; begin < members_.size();) {
            std::size_t end = begin + 1;
            while (end < members_.size() && end - begin < most &&
                   first_[members_[end]] == first_[members_[begin]]) {
                ++end;
            }
            visit(std::span{members_}.subspan(begin, end - begin));
            begin = end;
        }
    }

    [[nodiscard]] bool empty() const { return members_.empty(); }

private:
    class Sets;

    void arrange(Sets& sets);

    std::vector<std::uint32_t> first_;  // by sample: start of its group in members_
    std::vector<SampleIndex> members_;  // group by group
};

}  // namespace stoker::sidecar
