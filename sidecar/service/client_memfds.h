#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/engine/sampler_service.h"

// Contents of the sealed memfds that clients send with kPlan and kBegin frames. Each memfd is
// checked before it is read: sealed against shrinking and writing, and of the length in its frame.
// kInvalidArgument: the client's mistake.
namespace stoker::sidecar {

// The longest plan accepted for a dataset, in positions: eight epochs, or a few more for a small
// dataset, at most 2 GiB of ids.
std::uint64_t plan_positions_max(std::uint64_t sample_count);

// Checks a plan without reading its ids; its memfd may hold up to kAheadSamplesMax more ids than
// its frame states. Returns the number of ids in all.
Result<std::uint64_t> check_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// Checks and reads a plan: every id must be below `sample_count`. Reads up to 2 GiB and sorts: not
// for the loop's thread.
Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count);

// Calls `visit` with chunks of the ids at positions `begin` to `end` of a plan; false stops it.
// kUnavailable: the plan is shorter.
Status visit_ids(
    const UniqueFd& memfd,
    std::uint64_t begin,
    std::uint64_t end,
    const std::function<bool(std::span<const std::uint64_t>)>& visit);

// A plan's memfd for a leader without kFeatureAhead: `memfd` itself if the plan ends with the
// epoch, otherwise a sealed copy of the epoch's ids. Returns a memfd unchanged if it is invalid or
// cannot be copied: the leader refuses it.
UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan, std::uint64_t sample_count);

// The largest sampler snapshot accepted or sent.
inline constexpr std::uint64_t kSnapshotBytesMax = 15U << 20U;

// Checks and reads the memfd of a kBegin frame; `sample_count` limits its length. Returns an empty
// state if the frame has no memfd.
Result<BeginState> read_begin_state(
    const UniqueFd& memfd, const local::Begin& begin, std::uint64_t sample_count);

// Creates a sealed memfd that holds `state` in kBegin's format. Errors of posix_error().
Result<UniqueFd> seal_begin_state(const BeginState& state);

}  // namespace stoker::sidecar
