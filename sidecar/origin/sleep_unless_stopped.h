#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Blocks for `delay`, or until a stop is requested; false after a stop. Any thread may call.
bool sleep_unless_stopped(Duration delay, const std::stop_token& stop);

}  // namespace stoker::sidecar
