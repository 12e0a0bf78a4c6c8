#include "sidecar/service/known_reads.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kSamples = 101;
const EpochShape kShape{.count = kSamples, .seed = 3, .ranks = 2};
const control::KnownReads kReads{"job", control::ReadOrder::kStoker, 3, false, 4, {0, 1}};

bool is_foretold(std::uint64_t epoch, std::vector<SampleIndex> ids) {
    const auto plan = StreamPlan::make(epoch, std::move(ids), 0, kSamples);
    return is_foretold(kReads, kSamples, 1, 2, *plan);
}

TEST(KnownReads, ForetellTheOrderOfTheirEpoch) {
    EXPECT_TRUE(is_foretold(2, epoch_order(kShape, 2, 1)));
    EXPECT_FALSE(is_foretold(1, epoch_order(kShape, 2, 1)));
    EXPECT_FALSE(is_foretold(2, epoch_order(kShape, 2, 0)));
    auto shorter = epoch_order(kShape, 2, 1);
    shorter.pop_back();
    EXPECT_FALSE(is_foretold(2, shorter));
}

TEST(KnownReads, ForetellTheRestOfAnEpochAndNothingPastTheLastOne) {
    const auto order = permutation(kSamples, 3, 2);
    std::vector<SampleIndex> rest;
    for (std::size_t at = 31; at < kSamples; at += 2) {
        rest.push_back(order[at]);  // 30 samples were read by a world of another size
    }
    rest.push_back(order[0]);  // 71 are left: rank 1 repeats one
    EXPECT_TRUE(is_foretold(2, rest));
    EXPECT_TRUE(is_foretold(4, {1, 2, 3}));
}

TEST(KnownReads, PlaceOnlyIfEveryRankHasASample) {
    EXPECT_TRUE(can_place(kReads, 2, 2));
    EXPECT_FALSE(can_place(kReads, 1, 2));
    EXPECT_FALSE(can_place(kReads, 0, 2));
    const auto owners = owners_of(kReads, kSamples, 2);
    EXPECT_EQ(owners.size(), kSamples);
    EXPECT_LE(std::ranges::count(owners, 0), 51);
    EXPECT_LE(std::ranges::count(owners, 1), 51);
}

TEST(KnownReads, BeginAnewWhenTheyAreOthersOrComeBack) {
    control::KnownReads others = kReads;
    others.seed = 4;
    EXPECT_TRUE(begin_anew(kReads, others));
    EXPECT_TRUE(begin_anew(std::nullopt, kReads));
    EXPECT_FALSE(begin_anew(kReads, kReads)) << "only members or addresses have changed";
    EXPECT_FALSE(begin_anew(kReads, std::nullopt)) << "the operator may not have heard it yet";
    EXPECT_FALSE(begin_anew(std::nullopt, std::nullopt));
}

}  // namespace
}  // namespace stoker::sidecar
