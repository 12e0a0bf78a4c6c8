#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sidecar/core/stream_plan.h"
#include "wire/control/orders.h"

// A job's known reads (docs/adr/0007), applied to a revision. Pure functions, the same on all nodes.
namespace stoker::sidecar {

// Whether samples of a revision with so many can be placed by the reads. If not, all nodes alike
// place them by the hash: no sample, fewer samples than ranks, more samples than torch's usual
// shuffle takes, or more members than a position has bits.
[[nodiscard]] bool can_place(
    const control::KnownReads& reads, std::uint64_t samples, std::size_t members);

// Positions of the owners in the group, by sample (owners_by_reads()). can_place() must be true. It
// takes long, so call it on a pool.
[[nodiscard]] std::vector<std::uint16_t> owners_of(
    const control::KnownReads& reads, std::uint64_t samples, std::size_t members);

// Whether a rank of the reads' job with this plan reads its epoch as foretold: the epoch's
// permutation, dealt out from its beginning or, after a resume in mid-epoch in a world of another
// size, from a later position. Compares every position, because the rule is known exactly or not at
// all. Replays one epoch, so call it on a pool. True for an epoch past the last one, of which the
// reads say nothing. can_place() must be true.
[[nodiscard]] bool is_foretold(
    const control::KnownReads& reads,
    std::uint64_t samples,
    std::uint32_t rank,
    std::uint32_t ranks,
    const StreamPlan& plan);

// Whether ranks are to be compared anew when a group with reads `before` is replaced by one with
// `after`: it has reads, and they are others, or the group had none.
[[nodiscard]] bool begin_anew(
    const std::optional<control::KnownReads>& before,
    const std::optional<control::KnownReads>& after);

}  // namespace stoker::sidecar
