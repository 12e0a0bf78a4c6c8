#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// What the nominal quotas of a pool guarantee together: every account has the bytes that it can use
// (useful_end()), up to its nominal quota, on the nodes where its datasets are read. Where nodes
// cannot hold that for all of them, those that are in each other's way rise together, in parts of
// their nominal quotas, until each has what it can use or its nodes are full (Megiddo 1974, in
// sixty-fourths). Minimums come first. Does not depend on what was granted before. Pure; private to
// decide_pool().
class Guarantee {
public:
    // `lower`: the minimums. `kept`: kept_lent(). The table must outlive it.
    Guarantee(const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept);

    // Bytes of each account, beyond the minimums.
    [[nodiscard]] const std::vector<Bytes>& owed() const { return owed_; }

    // Nodes that are too full for what is owed if the claims have at least so much, by node; empty:
    // it can be given.
    [[nodiscard]] std::vector<bool> nodes_in_the_way(const ClaimBytes& amounts) const;

private:
    // Bytes that the claims of an account on a node can use beyond the minimums.
    struct Want {
        std::size_t account = 0;
        std::size_t node = 0;
        Bytes bytes{};
    };

    void rise_together(const std::vector<Bytes>& most, const std::vector<Bytes>& used);

    const ClaimTable& table_;
    ClaimBytes lower_;
    std::vector<Bytes> node_room_;
    std::vector<Want> wants_;
    std::vector<std::size_t> want_of_;  // of each claim
    std::vector<Bytes> owed_;
};

}  // namespace stoker::control
