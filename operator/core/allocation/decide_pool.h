#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// The decision for one pool; each ClaimBytes has one entry per claim of the table. Private to
// operator/core/allocation.
struct PoolDecision {
    ClaimBytes lower;         // minimums, and bytes of mode Fixed
    std::vector<Bytes> owed;  // per account, beyond its minimums; Guarantee::owed()
    ClaimBytes guaranteed;    // the minimums plus the owed bytes
    ClaimBytes by_jobs;       // final amounts, without the bytes that only fills want
    ClaimBytes target;        // final amounts
    ClaimBytes within;        // part of `target` that is not borrowed
    ClaimBytes granted;       // now: no claim grows into bytes that may still be held elsewhere
    // Claims whose grant is not sent yet: it includes bytes that no leader has counted while other
    // claims must shrink. With fewer bytes on the disk it would let the claim grow too early.
    std::vector<bool> withheld;
    std::vector<std::uint64_t> origin_limit;  // bytes/s; 0: none
    std::vector<double> job_origin;           // bytes/s that each job can expect; 0: unknown
    std::optional<FillOrigin> fill_origin{};  // none: the pool's bandwidth is not known
};

// Steps 1 to 3 of plan_allocation(), then grant_fills(), then shrinking before growing, then share_bandwidth(). Pure.
PoolDecision decide_pool(const ClaimTable& table);

}  // namespace stoker::control
