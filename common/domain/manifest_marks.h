#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/domain/manifest.h"

// Digests of a manifest's pieces, with which two nodes find where their listings first differ
// without exchanging the listings. Pure, thread-safe.
namespace stoker::domain {

inline constexpr std::size_t kManifestMarksMax = 256;

// digests[k] covers keys, sizes and ETags of the samples [0, piece_end(marks, k)).
struct ManifestMarks {
    std::uint64_t samples = 0;
    std::vector<std::uint64_t> digests;  // at most kManifestMarksMax

    bool operator==(const ManifestMarks&) const = default;
};

// The end (exclusive) of the k-th piece, 0 <= k < digests.size().
std::uint64_t piece_end(const ManifestMarks& marks, std::size_t k);

// One mark per sample, or kManifestMarksMax marks at even distances. O(samples).
ManifestMarks mark_manifest(const ManifestView& manifest);

struct SampleRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;

    bool operator==(const SampleRange&) const = default;
};

// The range of samples in the first piece of `theirs` that differs from ours; its `first` may be
// our sample count, if our listing ends there. nullopt: no difference, or no marks. O(samples).
std::optional<SampleRange> find_difference(const ManifestView& ours, const ManifestMarks& theirs);

}  // namespace stoker::domain
