#pragma once

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace stoker::control {

// Time stamps of Kubernetes objects: RFC 3339. Pure, thread-safe.

// Accepts "2026-01-31T12:00:00Z" and fractions of a second ("...:00.123456Z"); other offsets than Z
// are refused, because the API server never writes them. A time before 1970 reads as 1970, one
// after 2199 as 2200-01-01, so that the difference of two times always fits into a Duration.
// kInvalidArgument: invalid time; the message quotes it.
Result<WallTime> parse_time(std::string_view text);

// Formats whole seconds, as metav1.Time: "2026-01-31T12:00:00Z". Fractions are cut, not rounded.
std::string format_time(WallTime time);

}  // namespace stoker::control
