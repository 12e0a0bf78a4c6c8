#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "operator/sidecars/text_bounds.h"
#include "wire/control/report.h"

// What a sidecar may say. It runs in a user's pod, so nothing that it says is taken on trust: texts
// and lists are bounded, totals fit into a status and never fall within one session. Which number
// has which bound: wire/control/codec/wire_fields.h. Pure, thread-safe.
namespace stoker::control {

inline constexpr std::size_t kSidecarDatasetCountMax = 16;  // as spec.datasets in the CRD
inline constexpr std::size_t kSidecarSketchCountMax = 128;  // jobs that read one node directory
inline constexpr std::size_t kSidecarJobBytesMax = 520;     // a filler names its Dataset and pool
inline constexpr std::int32_t kSidecarRankMax = 65535;
inline constexpr std::uint64_t kSidecarCountMax =
    1ULL << 56U;  // of anything; the sum over 100 pods fits into an int64
inline constexpr std::uint64_t kSidecarTimeMax = 1ULL << 60U;  // nanoseconds, summed over processes

// Whether namespace, pod and node are true is the authenticator's to say. kInvalidArgument: a
// missing, empty or overlong name, a rank out of range, too many datasets or one twice.
Status validate_hello(const Hello& hello);

// `before` is the last report of the same session, null for the first. kAlreadyExists: not newer
// than `before`; it is to be ignored and means nothing bad. kInvalidArgument: a dataset that the
// hello did not name, or numbers that cannot be.
Status validate_report(const Hello& hello, const Report* before, const Report& next);

// A sketch without masses stands for the one of the same revision in `before`, the last report of
// the session (null: none), and takes its masses over; where there is none, it goes.
void complete_sketches(const Report* before, Report& next);

// Cuts error texts and keys to kMessageBytesMax, at a character's border.
void trim_texts(Report& report);

}  // namespace stoker::control
