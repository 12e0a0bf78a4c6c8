#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// Who pays for what, said once more for allocation_sim_test.cc: not with the planner's own code.
namespace stoker::control {

using PlaceBytes = std::map<std::pair<std::string, std::string>, Bytes>;  // by node, uid
using PlaceNames = std::map<std::pair<std::string, std::string>, std::set<std::string>>;
using NamespaceBytes = std::map<std::string, Bytes>;

inline Bytes bytes_of(const NamespaceBytes& bytes, const std::string& ns) {
    const auto found = bytes.find(ns);
    return found == bytes.end() ? Bytes::zero() : found->second;
}

// The namespaces of the jobs that read a dataset on a node.
inline PlaceNames readers_of(const std::vector<Demand>& jobs) {
    PlaceNames result;
    for (const Demand& job : jobs) {
        for (const std::string& node : job.nodes) {
            result[{node, job.datasets[0].uid}].insert(job.job.ns);
        }
    }
    return result;
}

// Even parts, rounded up, for those who pay.
inline NamespaceBytes paid_for(const PlaceBytes& amounts, const PlaceNames& payers) {
    NamespaceBytes result;
    for (const auto& [place, who] : payers) {
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

// Holds the leaders to the quotas where namespaces pay for datasets together. Who pays is what the
// leader says that has taken over: that knows who pays for everything. Until then the word of the
// one before it stands.
class Referee {
public:
    // Of every tick. Places that nobody reads are swept.
    void look_at(const std::vector<Demand>& jobs) {
        const PlaceNames readers = readers_of(jobs);
        const auto is_swept = [&](const auto& entry) { return !readers.contains(entry.first); };
        std::erase_if(payers_, is_swept);
        std::erase_if(readers_ever_, is_swept);
        for (const auto& [place, who] : readers) {
            readers_ever_[place].insert(who.begin(), who.end());
        }
    }

    void hear(const AllocationPlan& plan) {
        for (const PlacePayers& place : plan.payers) {
            payers_[{place.node, place.dataset_uid}] = {place.payers.begin(), place.payers.end()};
        }
    }

    // `amounts`: what may be there.
    void expect_fair_parts(
        const PlaceBytes& amounts,
        const std::vector<QuotaView>& quotas,
        const std::string& when) const {
        expect_within(paid_for(amounts, payers_), quotas, when);
        for (const auto& [place, who] : payers_) {
            for (const std::string& ns : who) {
                EXPECT_TRUE(readers_ever_.at(place).contains(ns))
                    << ns << " never read " << place.first << place.second;
            }
        }
    }

    void expect_that_nobody_pays_who_has_left(const std::vector<Demand>& jobs) const {
        EXPECT_EQ(payers_, readers_of(jobs));
    }

private:
    PlaceNames payers_;
    PlaceNames readers_ever_;
};

}  // namespace stoker::control
