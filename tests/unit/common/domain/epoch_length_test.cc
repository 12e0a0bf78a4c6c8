#include "common/domain/epoch_length.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

std::uint32_t draws(const ContractValues& values, std::uint64_t epoch, std::uint32_t share) {
    return draws_of_epoch("importance", values, 2, epoch, share);
}

TEST(EpochLength, ContractsWithoutImportanceReadTheRanksWholeShare) {
    for (const char* contract : {"exact", "windowed", "replicate"}) {
        EXPECT_EQ(draws_of_epoch(contract, {}, 2, 7, 1000), 1000U) << contract;
    }
}

TEST(EpochLength, CountsTheWholeShareForOneRank) {
    EXPECT_EQ(draws_of_epoch("importance", {{"beta", 1}}, 1, 7, 1000), 1000U);
    EXPECT_EQ(draws_of_epoch("importance", {{"family", 1}}, 1, 7, 1000), 1000U);
}

TEST(EpochLength, FamilyICacheReadsAPartOfTheShareInMostEpochs) {
    const ContractValues values{{"beta", 0.25}, {"warmupEpochs", 2}, {"reuseFactor", 4}};
    const std::vector<std::uint32_t> expected{1000, 1000, 800, 800, 1000, 800};
    for (std::uint64_t epoch = 0; epoch < expected.size(); ++epoch) {
        EXPECT_EQ(draws(values, epoch, 1000), expected[epoch]) << epoch;
    }
    EXPECT_EQ(draws(values, 5, 3), 3U) << "rounded up";
    EXPECT_EQ(draws({}, 4, 1000), 1000U) << "five full epochs are the default";
    EXPECT_EQ(draws({}, 7, 1000), 752U);
}

TEST(EpochLength, FamilyIowaReadsLessInEachEpochUntilSamplesReturn) {
    const ContractValues values{
        {"family", 1}, {"outRate", 0.5}, {"minFraction", 0.2}, {"recallAfter", 3}};
    const std::vector<std::uint32_t> expected{1000, 500, 250, 200, 600, 300, 200, 200, 600};
    for (std::uint64_t epoch = 0; epoch < expected.size(); ++epoch) {
        EXPECT_NEAR(draws(values, epoch, 1000), expected[epoch], 1) << epoch;
    }
    EXPECT_EQ(draws({{"family", 1}}, 0, 1000), 1000U) << "one full epoch is the default";
    EXPECT_EQ(draws({{"family", 1}}, 1, 1000), 900U);
}

// An independent model in floating point, also far beyond the epochs that are computed one by one.
TEST(EpochLength, IowaFollowsItsRecurrence) {
    Prng luck(test::seed());
    for (int round = 0; round < 20; ++round) {
        const double out_rate = luck.unit();
        const double least = luck.unit();
        const double recalled = luck.unit();
        const auto recall_after = 1 + luck.below(6);
        const ContractValues values{
            {"family", 1},
            {"outRate", out_rate},
            {"minFraction", least},
            {"recallFraction", recalled},
            {"recallAfter", static_cast<double>(recall_after)}};
        double bucket = 1;
        for (std::uint64_t epoch = 1; epoch < 3000; ++epoch) {
            bucket = epoch % (recall_after + 1) == 0 ? 1 - (1 - recalled) * (1 - bucket)
                                                     : std::fmax(least, bucket * (1 - out_rate));
            ASSERT_NEAR(draws(values, epoch, 1'000'000), std::ceil(1e6 * bucket), 2)
                << epoch << " STOKER_TEST_SEED=" << test::seed();
        }
        const std::uint64_t cycle = recall_after + 1;
        const std::uint64_t late = std::numeric_limits<std::uint64_t>::max() / cycle * cycle;
        EXPECT_NEAR(draws(values, late, 1'000'000), draws(values, 2000 * cycle, 1'000'000), 1);
    }
}

TEST(EpochLength, NoEpochIsEmpty) {
    const ContractValues all_out{
        {"family", 1}, {"outRate", 1}, {"minFraction", 0}, {"recallFraction", 0}};
    EXPECT_EQ(draws(all_out, 9, 1000), 1U);
    EXPECT_EQ(draws({{"family", 1}, {"outRate", 1}, {"minFraction", 0.3}}, 1, 1), 1U);
    EXPECT_EQ(draws({{"beta", 16}}, 7, 1), 1U);
}

TEST(EpochLength, RejectsInvalidContractValues) {
    const auto says = [](std::string_view contract, const ContractValues& values) {
        const Status checked = check_values(contract, values);
        return checked ? "" : checked.error().message;
    };
    EXPECT_EQ(says("importance", {{"beta", 0.5}, {"reuseFactor", 2}}), "");
    EXPECT_EQ(says("importance", {{"family", 1}, {"warmupEpochs", 2}}), "");
    EXPECT_EQ(says("importance", {{"reuseFactor", 0}}), "reuseFactor is 0, outside 1..10000");
    EXPECT_EQ(
        says("importance", {{"reuseFactor", 1.5}}), "reuseFactor is 1.5, not a multiple of 1");
    EXPECT_EQ(
        says("exact", {{"beta", 1}}),
        "contract 'exact' has no parameter 'beta' here; it has: none");
    EXPECT_NE(says("importance", {{"outRate", 0.1}}), "");
    EXPECT_NE(says("importance", {{"beta", std::nan("")}}), "");
}

TEST(EpochLength, TheLargestShareDoesNotOverflow) {
    constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
    EXPECT_EQ(draws({{"family", 1}, {"outRate", 0}}, 9, kMost), kMost);
    EXPECT_EQ(draws({{"beta", 0}}, 7, kMost), kMost);
}

}  // namespace
}  // namespace stoker::domain
