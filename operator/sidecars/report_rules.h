#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "operator/sidecars/text_bounds.h"
#include "wire/control/report.h"

// Validation of sidecars' reports. A sidecar runs in a user's pod, so its data is untrusted: texts
// and lists are bounded, totals fit into a status and never decrease within one session.
// wire/control/codec/wire_fields.h has the bound of each number. Pure, thread-safe.
namespace stoker::control {

// Whether a report says something that someone waits for: anything besides growing numbers, such as
// a new leader, revision or error. `before` is null for the first report of a stream. Pure.
bool is_news(const Report* before, const Report& next);

inline constexpr std::size_t kSidecarDatasetCountMax = 16;  // as spec.datasets in the CRD
inline constexpr std::size_t kSidecarSketchCountMax = 128;  // jobs that read one node directory
inline constexpr std::int32_t kSidecarRankMax = 65535;
inline constexpr std::uint64_t kSidecarCountMax =
    1ULL << 56U;  // of any counter; the sum over 100 pods fits into an int64
inline constexpr std::uint64_t kSidecarIdMax = 1ULL << 62U;    // also nanoseconds since 1970
inline constexpr std::uint64_t kSidecarTimeMax = 1ULL << 60U;  // nanoseconds, summed over processes

// Does not check namespace, pod and node; the authenticator does. kInvalidArgument: a missing,
// empty or overlong name, a rank out of range, too many datasets or a duplicate.
Status validate_hello(const Hello& hello);

// `before` is the last report of the same session, null for the first. kAlreadyExists: not newer
// than `before`; ignore it, it is harmless. kInvalidArgument: a dataset that the hello did not
// name, or numbers out of range.
Status validate_report(const Hello& hello, const Report* before, const Report& next);

// A RankSketch without masses has those of the same job and sketch revision in `before`, the last
// report of the session (null: none): copies them, or removes the sketch if `before` has none.
void complete_sketches(const Report* before, Report& next);

// Cuts error texts and keys to kMessageBytesMax, between characters.
void trim_texts(Report& report);

}  // namespace stoker::control
