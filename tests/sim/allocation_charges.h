#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/allocation_view.h"

// Who pays for what, said once more for allocation_sim_test.cc: not with the planner's own code.
namespace stoker::control {

using PlaceBytes = std::map<std::pair<std::string, std::string>, Bytes>;  // by node, uid
using NamespaceBytes = std::map<std::string, Bytes>;

inline Bytes bytes_of(const NamespaceBytes& bytes, const std::string& ns) {
    const auto found = bytes.find(ns);
    return found == bytes.end() ? Bytes::zero() : found->second;
}

// Even parts, rounded up, for the namespaces of the jobs that read a dataset on a node.
inline NamespaceBytes paid_for(const PlaceBytes& amounts, const std::vector<Demand>& jobs) {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> readers;
    for (const Demand& job : jobs) {
        for (const std::string& node : job.nodes) {
            readers[{node, job.datasets[0].uid}].insert(job.job.ns);
        }
    }
    NamespaceBytes result;
    for (const auto& [place, who] : readers) {
        const auto found = amounts.find(place);
        const std::uint64_t bytes = found == amounts.end() ? 0 : found->second.count();
        for (const std::string& ns : who) {
            result[ns] += Bytes{(bytes + who.size() - 1) / who.size()};
        }
    }
    return result;
}

// Borrowed bytes that nobody lends.
inline Bytes overdraft(const NamespaceBytes& used, const std::vector<QuotaView>& quotas) {
    Bytes borrowed{};
    Bytes lendable{};
    for (const QuotaView& quota : quotas) {
        const Bytes mine = bytes_of(used, quota.ns);
        borrowed += mine - quota.nominal;
        lendable += std::min(quota.lending, quota.nominal - mine);
    }
    return borrowed - lendable;
}

inline void expect_within(
    const NamespaceBytes& used, const std::vector<QuotaView>& quotas, const std::string& when) {
    for (const QuotaView& quota : quotas) {
        EXPECT_LE(bytes_of(used, quota.ns), quota.nominal + quota.borrowing)
            << quota.ns << " " << when;
    }
    EXPECT_EQ(overdraft(used, quotas), Bytes::zero()) << when;
}

}  // namespace stoker::control
