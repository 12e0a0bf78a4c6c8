#include "sidecar/core/sampling/redundancy_groups.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

std::vector<SampleIndex> group(const RedundancyGroups& groups, SampleIndex sample) {
    const auto members = groups.group_of(sample);
    return {members.begin(), members.end()};
}

// The example in the slides on IOWA (Hu, Chen, Yin, He): groups {2,4,7} and {5,6}.
TEST(RedundancyGroups, GroupNearDuplicates) {
    const std::vector<Fingerprint> prints = {
        0x0F0F0F0F0F0F0F0F,
        0xFFFF0000FFFF0000,
        0x00000000000000FF,
        0x123456789ABCDEF0,
        0x00000000000000FE,
        0xAAAAAAAAAAAAAAAA,
        0xAAAAAAAAAAAAAAAB,
        0x80000000000000FF};
    const RedundancyGroups groups(prints, 1);
    EXPECT_EQ(group(groups, 4), (std::vector<SampleIndex>{2, 4, 7}));
    EXPECT_EQ(group(groups, 2), group(groups, 7));
    EXPECT_EQ(group(groups, 5), (std::vector<SampleIndex>{5, 6}));
    EXPECT_EQ(group(groups, 0), (std::vector<SampleIndex>{0}));
    EXPECT_FALSE(groups.is_copy(2));
    EXPECT_TRUE(groups.is_copy(4));
    EXPECT_FALSE(groups.is_copy(3));
    EXPECT_TRUE(group(groups, 8).empty());
    EXPECT_FALSE(groups.is_copy(8));
}

TEST(RedundancyGroups, GroupEqualFingerprintsAtDistanceZero) {
    const std::vector<Fingerprint> prints = {5, 4, 5, 4, 5};
    const RedundancyGroups groups(prints, 0);
    EXPECT_EQ(group(groups, 4), (std::vector<SampleIndex>{0, 2, 4}));
    EXPECT_EQ(group(groups, 3), (std::vector<SampleIndex>{1, 3}));
}

TEST(RedundancyGroups, AreEmptyWithoutFingerprints) {
    EXPECT_TRUE(RedundancyGroups().empty());
    EXPECT_TRUE(RedundancyGroups({}, 3).empty());
    EXPECT_FALSE(RedundancyGroups().is_copy(0));
}

// RedundancyGroups compares only samples that agree in a band of their bits; it must find the same
// pairs as a search over all pairs, for every threshold.
TEST(RedundancyGroups, AgreeWithComparingAllPairs) {
    Prng luck(test::seed());
    for (const std::uint32_t threshold : {0U, 1U, 2U, 5U, 10U, 31U, 63U}) {
        SCOPED_TRACE(threshold);
        std::vector<Fingerprint> prints;
        for (int i = 0; i < 150; ++i) {
            Fingerprint print = luck();
            if (i > 20) {  // differs from an earlier one in some random bits
                print = prints[luck.below(prints.size())];
                for (std::uint64_t flips = luck.below(threshold + 4); flips > 0; --flips) {
                    print ^= Fingerprint{1} << luck.below(64);
                }
            }
            prints.push_back(print);
        }
        std::vector<std::uint32_t> lowest(prints.size());
        for (std::uint32_t i = 0; i < prints.size(); ++i) {
            lowest[i] = i;
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (std::uint32_t i = 0; i < prints.size(); ++i) {
                for (std::uint32_t j = 0; j < prints.size(); ++j) {
                    if (static_cast<std::uint32_t>(std::popcount(prints[i] ^ prints[j])) <=
                            threshold &&
                        lowest[j] < lowest[i]) {
                        lowest[i] = lowest[j];
                        changed = true;
                    }
                }
            }
        }
        const RedundancyGroups groups(prints, threshold);
        for (std::uint32_t i = 0; i < prints.size(); ++i) {
            ASSERT_EQ(groups.group_of(i).front(), lowest[i]);
            ASSERT_EQ(
                groups.group_of(i).size(),
                static_cast<std::size_t>(std::count(lowest.begin(), lowest.end(), lowest[i])));
        }
    }
}

TEST(RedundancyGroups, SkipUnknownFingerprintsAndKeepEarlierGroups) {
    const std::vector<Fingerprint> prints = {0, 0, 0, 1, 0xFF00};
    const std::vector<bool> known = {true, false, true, true, true};
    const RedundancyGroups::Copy before{4, 1};
    const RedundancyGroups groups{prints, 1, known, RedundancyGroups::of(5, {&before, 1}), 64};
    EXPECT_FALSE(groups.is_copy(0));
    EXPECT_FALSE(groups.is_copy(1));
    EXPECT_TRUE(groups.is_copy(2));
    EXPECT_TRUE(groups.is_copy(3));
    EXPECT_TRUE(groups.is_copy(4));
    EXPECT_EQ(groups.group_of(1).size(), 2U);
    EXPECT_EQ(groups.group_of(0).size(), 3U);
}

TEST(RedundancyGroups, AreRestoredFromTheirCopies) {
    const std::vector<Fingerprint> prints = {5, 9, 5, 9, 9, 1ULL << 40U};
    const RedundancyGroups groups{prints, 0};
    const auto copies = groups.copies();
    EXPECT_EQ(copies.size(), 3U);
    const auto again = RedundancyGroups::of(6, copies);
    for (SampleIndex sample = 0; sample < 6; ++sample) {
        EXPECT_TRUE(std::ranges::equal(groups.group_of(sample), again.group_of(sample)));
    }
    const RedundancyGroups::Copy outside{7, 0};
    EXPECT_TRUE(RedundancyGroups::of(6, {&outside, 1}).copies().empty());
}

TEST(RedundancyGroups, LimitTheNumberOfComparisons) {
    std::vector<Fingerprint> prints;
    for (Fingerprint i = 0; i < 100; ++i) {
        prints.push_back(i * 0x111);  // equal in the upper bands
    }
    const std::vector<bool> known(prints.size(), true);
    const RedundancyGroups all{prints, 3};
    const RedundancyGroups few{prints, 3, known, {}, 1};
    EXPECT_LT(few.copies().size(), all.copies().size());
}

}  // namespace
}  // namespace stoker::sidecar
