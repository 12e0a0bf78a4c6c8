#pragma once

#include <string>

#include "common/base/clock.h"

namespace stoker::control {

// metav1.MicroTime: exactly six digits of fraction, or the server's parser refuses it; leases and
// events are written with it. "2026-01-31T12:00:00.000000Z". Nanoseconds are cut, not rounded.
// Pure.
std::string format_micro_time(WallTime time);

}  // namespace stoker::control
