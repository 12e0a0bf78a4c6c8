#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::test {

// Checks a policy and its caller against the contract of EvictionPolicy: tracks the residents
// separately and fails the running test (gtest) on a wrong call or answer.
class AuditedPolicy final : public sidecar::EvictionPolicy {
public:
    explicit AuditedPolicy(std::unique_ptr<sidecar::EvictionPolicy> policy)
        : policy_(std::move(policy)) {}

    void on_resident(sidecar::SampleIndex sample, Bytes bytes) override {
        EXPECT_TRUE(residents_.emplace(sample, bytes).second) << sample << " is resident already";
        total_ += bytes;
        policy_->on_resident(sample, bytes);
    }

    void on_gone(sidecar::SampleIndex sample) override {
        const auto found = residents_.find(sample);
        ASSERT_NE(found, residents_.end()) << sample << " is not resident";
        total_ -= found->second;
        residents_.erase(found);
        policy_->on_gone(sample);
    }

    void on_read(sidecar::SampleIndex sample, bool hit) override {
        EXPECT_TRUE(!hit || residents_.contains(sample)) << sample << " cannot be a hit";
        policy_->on_read(sample, hit);
    }

    bool make_room(
        sidecar::SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<sidecar::SampleIndex>& victims) override {
        EXPECT_FALSE(residents_.contains(incoming)) << incoming << " has its place already";
        const std::size_t before = victims.size();
        const bool made = policy_->make_room(incoming, needed, may_go, victims);
        const Bytes freed = check(victims, before);
        for (std::size_t i = before; i < victims.size(); ++i) {
            EXPECT_TRUE(may_go(victims[i])) << victims[i] << " may not go";
        }
        EXPECT_EQ(made, victims.size() > before);
        EXPECT_TRUE(!made || freed >= needed);
        return made;
    }

    void shrink(Bytes excess, std::vector<sidecar::SampleIndex>& victims) override {
        const std::size_t before = victims.size();
        policy_->shrink(excess, victims);
        const Bytes freed = check(victims, before);
        EXPECT_TRUE(freed >= excess || freed == total_) << "gives up too little";
        if (victims.size() > before) {
            EXPECT_LT(freed - residents_.at(victims.back()), excess) << "gives up too much";
        }
    }

    [[nodiscard]] Bytes total() const { return total_; }

    [[nodiscard]] const std::map<sidecar::SampleIndex, Bytes>& residents() const {
        return residents_;
    }

private:
    // Checks that these are residents without duplicates. Returns their bytes.
    [[nodiscard]] Bytes check(
        const std::vector<sidecar::SampleIndex>& victims, std::size_t from) const {
        std::set<sidecar::SampleIndex> seen;
        Bytes bytes;
        for (std::size_t i = from; i < victims.size(); ++i) {
            EXPECT_TRUE(residents_.contains(victims[i])) << victims[i] << " is not resident";
            EXPECT_TRUE(seen.insert(victims[i]).second) << victims[i] << " is named twice";
            bytes += residents_.contains(victims[i]) ? residents_.at(victims[i]) : Bytes{};
        }
        return bytes;
    }

    std::unique_ptr<sidecar::EvictionPolicy> policy_;
    std::map<sidecar::SampleIndex, Bytes> residents_;
    Bytes total_;
};

}  // namespace stoker::test
