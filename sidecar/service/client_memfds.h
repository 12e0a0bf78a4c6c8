#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/engine/sampler_service.h"

// What clients send in sealed memfds, beside kPlan and kBegin frames. Each is checked before it is
// read: sealed against shrinking and writing, of the length that its frame says. kInvalidArgument:
// what the client did wrong.
namespace stoker::sidecar {

// The longest plan that we take of a dataset: eight epochs, or a few more of a small one, and never
// more than 2 GiB of ids.
std::uint64_t plan_positions_max(std::uint64_t sample_count);

// Checks a plan without reading it; it may have up to kAheadSamplesMax ids more than its frame
// says. Gives how many positions it has in all.
Result<std::uint64_t> check_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// Checks and reads it: every id below `sample_count`. Reads up to 2 GiB and sorts: not for the
// loop's thread.
Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// Calls `visit` with the ids at positions `begin` to `end` of a plan, piece by piece; false ends
// it. kUnavailable: there are fewer.
Status visit_ids(
    const UniqueFd& memfd,
    std::uint64_t begin,
    std::uint64_t end,
    const std::function<bool(std::span<const std::uint64_t>)>& visit);

// A plan's memfd for a leader without kFeatureAhead: `memfd` itself where nothing lies behind the
// epoch, else a sealed copy of the epoch's own ids. What is no plan, or cannot be copied, is given
// as it is: the leader refuses it.
UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan, std::uint64_t sample_count);

// The largest snapshot of a sampler that we take or give.
inline constexpr std::uint64_t kSnapshotBytesMax = 15U << 20U;

// Checks and reads what came with a kBegin frame, which is no longer than `sample_count` samples
// need. Nothing to read: an empty state.
Result<BeginState> read_begin_state(
    const UniqueFd& memfd, const local::Begin& begin, std::uint64_t sample_count);

// A sealed memfd that holds `state` as kBegin wants it. Errors of posix_error().
Result<UniqueFd> seal_begin_state(const BeginState& state);

}  // namespace stoker::sidecar
