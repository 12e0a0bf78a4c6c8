#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/allocation_view.h"

// Oracle of charges for allocation_sim_test.cc; independent of the planner's code.
namespace stoker::control {

using PlaceBytes = std::map<std::pair<std::string, std::string>, Bytes>;  // by node, uid
using NamespaceBytes = std::map<std::string, Bytes>;

// Bytes charged to each namespace. A dataset's uid begins with its namespace, three characters.
inline NamespaceBytes paid_for(const PlaceBytes& amounts) {
    NamespaceBytes result;
    for (const auto& [place, bytes] : amounts) {
        result[place.second.substr(0, 3)] += bytes;
    }
    return result;
}

// A pool's bytes outside all nominal quotas.
inline Bytes unnamed_bytes(
    const std::vector<PoolNode>& nodes, const std::vector<QuotaView>& quotas) {
    Bytes result{};
    for (const PoolNode& node : nodes) {
        result += node.capacity;
    }
    for (const QuotaView& quota : quotas) {
        result -= quota.nominal;
    }
    return result;
}

// `quotas`: of every namespace. `unnamed`: bytes that may be borrowed in addition to lent ones.
inline void expect_within(
    NamespaceBytes used,
    const std::vector<QuotaView>& quotas,
    Bytes unnamed,
    const std::string& when) {
    Bytes borrowed{};
    Bytes lendable = unnamed;
    for (const QuotaView& quota : quotas) {
        const Bytes mine = used[quota.ns];
        EXPECT_LE(mine, quota.nominal + quota.borrowing) << quota.ns << " " << when;
        borrowed += mine - quota.nominal;
        lendable += std::min(quota.lending, quota.nominal - mine);
    }
    EXPECT_LE(borrowed, lendable) << when;
}

}  // namespace stoker::control
