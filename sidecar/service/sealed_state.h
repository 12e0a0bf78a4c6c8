#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/sampling_frames.h"
#include "sidecar/engine/sampler_service.h"

namespace stoker::sidecar {

// The largest snapshot of a sampler that we take or give.
inline constexpr std::uint64_t kSnapshotBytesMax = 15U << 20U;

// Checks and reads the memfd that came with a kBegin frame: sealed against shrinking and writing,
// of exactly the length that the frame says, no longer than `sample_count` samples need. Nothing to
// read: an empty state. kInvalidArgument: what the client did wrong.
Result<BeginState> read_begin_state(
    const UniqueFd& memfd, const local::Begin& begin, std::uint64_t sample_count);

// A sealed memfd that holds `state` as kBegin wants it. kResourceExhausted, kInternal: the system.
Result<UniqueFd> seal_begin_state(const BeginState& state);

}  // namespace stoker::sidecar
