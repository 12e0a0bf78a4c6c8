#pragma once

#include <string>

#include "common/base/clock.h"

namespace stoker::control {

// Formats metav1.MicroTime for leases and events: "2026-01-31T12:00:00.000000Z". Always six
// fraction digits, because the server's parser requires them. Nanoseconds are cut, not rounded.
// Pure.
std::string format_micro_time(WallTime time);

}  // namespace stoker::control
