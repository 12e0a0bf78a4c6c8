#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

// The longest plan that we take of a dataset: eight epochs, or a few more of a small one, and never
// more than 2 GiB of ids.
std::uint64_t plan_positions_max(std::uint64_t sample_count);

// Checks the memfd that came with a kPlan frame without reading it: sealed against shrinking and
// writing, of the length that the frame says or with up to kAheadSamplesMax ids more. Gives how
// many positions it has in all. kInvalidArgument: what the client did wrong.
Result<std::uint64_t> check_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// Checks and reads it: every id below `sample_count`. Reads up to 2 GiB and sorts: not for the
// loop's thread. kInvalidArgument as above.
Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// A plan's memfd for a leader without kFeatureAhead: `memfd` itself where nothing lies behind the
// epoch, else a sealed copy of the epoch's own ids. What is no plan, or cannot be copied, is given
// as it is: the leader's to refuse.
UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan, std::uint64_t sample_count);

}  // namespace stoker::sidecar
