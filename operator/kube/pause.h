#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace stoker::control {

// Waits until `clock` shows `until`, or a stop is requested; false after a stop. Thread-safe.
bool pause_until(const Clock& clock, TimePoint until, const std::stop_token& stop);

}  // namespace stoker::control
