#pragma once

#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// Raises `given` until the slowest job is as fast as possible, then the next slowest, for a few
// rounds; returns the new amounts. Speed is the share of f* (bytes/s if data were never late)
// that a job can read on its slowest node. `guarantee`: if set, its owed bytes stay reserved. Pure;
// private to decide_pool().
ClaimBytes raise_the_slowest(
    const ClaimTable& table,
    const Rooms& rooms,
    const ClaimBytes& given,
    const Guarantee* guarantee);

}  // namespace stoker::control
