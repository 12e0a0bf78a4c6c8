#pragma once

#include "common/base/clock.h"

namespace stoker::control {

// "Now" on both clocks: intervals are measured on the first, stamps are taken from the second.
struct Moment {
    TimePoint steady{};
    WallTime wall{};
};

}  // namespace stoker::control
