#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

// The longest plan that we take: 2 GiB of ids.
inline constexpr std::uint64_t kPlanPositionsMax = std::uint64_t{1} << 28U;

// Checks and reads the memfd that came with a kPlan frame: sealed against shrinking and writing, of
// the length that the frame says or with up to kAheadSamplesMax ids more, every id below
// `sample_count`. Reads up to 2 GiB and sorts: not for the loop's thread. kInvalidArgument: what
// the client did wrong.
Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// A plan's memfd for a leader without kFeatureAhead: `memfd` itself where nothing lies behind the
// epoch, else a sealed copy of the epoch's own ids. What is no plan, or cannot be copied, is given
// as it is: the leader's to refuse.
UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan);

}  // namespace stoker::sidecar
