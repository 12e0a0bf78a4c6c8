#pragma once

#include <vector>

#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// Gives fills (Demand::fill) the room that `amounts`, the targets of jobs, leave on the nodes:
// within nominal quotas of charged namespaces, then what these may borrow. Never reduces an amount.
// A fill keeps what it has, so that one warm-up evicts nothing of another; new bytes are divided
// evenly among the datasets of a node. `kept`: see kept_lent(). Pure; private to decide_pool().
void grant_fills(const ClaimTable& table, const std::vector<Bytes>& kept, ClaimBytes& amounts);

}  // namespace stoker::control
