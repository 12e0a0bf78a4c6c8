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
// exactly the length that the frame says, every id below `sample_count`. Reads up to 2 GiB and
// sorts: not for the loop's thread. kInvalidArgument: what the client did wrong.
Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

}  // namespace stoker::sidecar
