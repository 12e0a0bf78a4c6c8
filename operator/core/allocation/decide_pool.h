#pragma once

#include <cstdint>
#include <vector>

#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// The decision about one pool; one entry for each claim of the table. Private to
// operator/core/allocation.
struct PoolDecision {
    ClaimBytes lower;         // minimums and what mode Fixed asks for
    std::vector<Bytes> owed;  // to each account beyond its minimums; Guarantee::owed()
    ClaimBytes guaranteed;    // the minimums, and where the owed bytes are
    ClaimBytes target;        // with all else
    ClaimBytes within;        // of the targets, what is not borrowed
    ClaimBytes granted;       // now: nobody has grown into bytes that may still be somewhere else
    std::vector<std::uint64_t> origin_limit;  // bytes/s; 0: none
    std::vector<double> job_origin;           // bytes/s that each job may count on; 0: not known
};

// Steps 1 to 3 of plan_allocation(), shrinking before growing, and share_bandwidth(). Pure.
PoolDecision decide_pool(const ClaimTable& table);

}  // namespace stoker::control
