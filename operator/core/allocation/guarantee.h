#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/rooms.h"

namespace stoker::control {

// Bytes that the nominal quotas of a pool guarantee together: each account gets the bytes that it
// can use (useful_end()), up to its nominal quota, on the nodes where its datasets are read. If
// nodes are too small for all, accounts that compete for a node rise together, in proportion to
// their nominal quotas, until each has all it can use or its nodes are full (Megiddo 1974; steps of
// 1/64). Minimums come first. Independent of earlier grants. Pure; private to decide_pool().
class Guarantee {
public:
    // `lower`: the minimums. `kept`: result of kept_lent(). The table must outlive this object.
    Guarantee(const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept);

    // Owed bytes of each account, beyond the minimums.
    [[nodiscard]] const std::vector<Bytes>& owed() const { return owed_; }

    // Nodes without room for the owed bytes if the claims have at least `amounts`, by node; empty:
    // all owed bytes fit.
    [[nodiscard]] std::vector<bool> nodes_in_the_way(const ClaimBytes& amounts) const;

private:
    // Bytes beyond the minimums that an account's claims on a node can use.
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
    std::vector<std::size_t> want_of_;  // by claim
    std::vector<Bytes> owed_;
};

}  // namespace stoker::control
