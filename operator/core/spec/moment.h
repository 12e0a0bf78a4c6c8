#pragma once

#include "common/base/clock.h"

namespace stoker::control {

// The present time on both clocks: the first measures intervals, the second gives timestamps.
struct Moment {
    TimePoint steady{};
    WallTime wall{};
};

}  // namespace stoker::control
