#include "sidecar/core/eviction/aggregated_importance.h"

#include <array>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "tests/support/test_seed.h"

// Properties (b) to (e) that iCACHE requires of the aggregation of several jobs' importance values.
// Property (a), that the scale of a job's losses does not matter, holds because ranks are
// aggregated.
namespace stoker::sidecar {
namespace {

using Ranks = std::vector<float>;

AggregatedImportance::Job job(double weight, const Ranks& ranks, double unimportant_below = 0) {
    return {.weight = weight, .unimportant_below = unimportant_below, .ranks = [&ranks] {
                return std::span<const float>(ranks);
            }};
}

Ranks random_ranks(std::uint32_t count, Prng& luck) {
    Ranks ranks(count);
    for (float& rank : ranks) {
        rank = static_cast<float>(luck.unit());
    }
    return ranks;
}

TEST(AggregatedImportance, IsTheWeightedMeanOfTheJobsRanks) {
    const Ranks one = {0.2F, 0.8F};
    const Ranks other = {1.0F, 0.0F};
    AggregatedImportance values;
    EXPECT_EQ(values.value(0), 0.0F);
    values.set_job(1, job(3, one));
    values.set_job(2, job(1, other));
    EXPECT_FLOAT_EQ(values.value(0), 0.4F);
    EXPECT_FLOAT_EQ(values.value(1), 0.6F);
    values.set_job(2, job(3, other));
    EXPECT_FLOAT_EQ(values.value(1), 0.4F);
}

// (b) A compute-bound job cannot displace an I/O-bound one.
TEST(AggregatedImportance, IgnoresImportanceOfAComputeBoundJob) {
    const Ranks io_bound = {0.1F, 0.9F};
    const Ranks compute_bound = {1.0F, 0.0F};
    AggregatedImportance values;
    values.set_job(1, job(1, io_bound));
    values.set_job(2, job(0, compute_bound));
    EXPECT_EQ(values.value(0), 0.1F);
    EXPECT_EQ(values.value(1), 0.9F);
    EXPECT_FALSE(values.unimportant(0));
}

// (c) With a single job each sample's value is exactly its rank in that job, whatever the weight.
TEST(AggregatedImportance, EqualsTheRanksOfASingleJob) {
    Prng luck(test::seed());
    const Ranks ranks = random_ranks(1000, luck);
    AggregatedImportance values;
    values.set_job(9, job(0.25, ranks));
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        ASSERT_EQ(values.value(sample), ranks[sample]);
    }
}

// (d) A job that leaves removes its contribution exactly.
TEST(AggregatedImportance, KeepsNothingOfAJobThatLeft) {
    Prng luck(test::seed());
    const Ranks one = random_ranks(500, luck);
    const Ranks other = random_ranks(500, luck);
    const Ranks leaver = random_ranks(500, luck);
    AggregatedImportance stayed;
    stayed.set_job(1, job(0.7, one));
    stayed.set_job(2, job(0.3, other));
    AggregatedImportance left;
    left.set_job(3, job(0.9, leaver));
    left.set_job(1, job(0.7, one));
    left.set_job(2, job(0.3, other));
    left.remove_job(3);
    for (SampleIndex sample = 0; sample < 500; ++sample) {
        ASSERT_EQ(left.value(sample), stayed.value(sample));
    }
    left.remove_job(1);
    left.remove_job(2);
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(left.value(0), 0.0F);
}

// Keeps the `kept` samples with the highest values: mean number of reads of such a sample per
// epoch, by both jobs together. Over all samples the mean is 2.
double saved_reads(
    const AggregatedImportance& values,
    const std::array<Ranks, 2>& ranks,
    const std::array<double, 2>& betas,
    std::size_t kept) {
    std::vector<SampleIndex> order(ranks[0].size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(
        order, std::greater{}, [&](SampleIndex sample) { return values.value(sample); });
    double saved = 0;
    for (const SampleIndex sample : std::span{order}.first(kept)) {
        for (const std::size_t job : {0U, 1U}) {
            saved += (1 + betas[job]) * std::pow(ranks[job][sample], betas[job]);
        }
    }
    return saved / static_cast<double>(kept);
}

// The larger a job's beta, the more of its reads go to samples of high importance rank. The cache
// must keep the samples that are read most often, not those of the highest mean rank.
TEST(AggregatedImportance, KeepsWhatIsReadMostOften) {
    Prng luck(test::seed());
    const std::array<Ranks, 2> ranks{random_ranks(20'000, luck), random_ranks(20'000, luck)};
    const std::array<double, 2> betas{.33, 3};
    AggregatedImportance by_reads;
    AggregatedImportance by_ranks;
    for (const std::size_t i : {0U, 1U}) {
        by_ranks.set_job(i, job(1, ranks[i]));
        auto with_curve = job(1, ranks[i]);
        with_curve.reads = ReadCurve(betas[i], 0);
        by_reads.set_job(i, with_curve);
    }
    for (const std::size_t kept : {2000U, 4000U, 8000U}) {
        EXPECT_GT(
            saved_reads(by_reads, ranks, betas, kept),
            1.05 * saved_reads(by_ranks, ranks, betas, kept))
            << kept;
    }
}

// (e) Values are per byte if sizes differ.
TEST(AggregatedImportance, DividesValuesBySampleSize) {
    const Ranks ranks = {0.6F, 0.5F, 0.9F};
    AggregatedImportance values(
        [](SampleIndex sample) { return Bytes{sample == 0 ? std::uint64_t{200} : 100}; });
    values.set_job(1, job(1, ranks));
    EXPECT_GT(values.value(1), values.value(0));
    EXPECT_FLOAT_EQ(values.value(0), 0.003F);
    AggregatedImportance no_bytes([](SampleIndex) { return Bytes::zero(); });
    no_bytes.set_job(1, job(1, ranks));
    EXPECT_EQ(no_bytes.value(2), 0.9F);
}

TEST(AggregatedImportance, UnimportantOnlyIfAllWeightedJobsAgree) {
    const Ranks one = {0.1F, 0.1F, 0.9F};
    const Ranks other = {0.2F, 0.5F, 0.1F};
    AggregatedImportance values;
    EXPECT_FALSE(values.unimportant(0));
    values.set_job(1, job(1, one, 0.4));
    values.set_job(2, job(1, other, 0.4));
    EXPECT_TRUE(values.unimportant(0));
    EXPECT_FALSE(values.unimportant(1));
    EXPECT_FALSE(values.unimportant(2));
    values.set_job(2, job(0, other, 0.4));
    EXPECT_TRUE(values.unimportant(1));
}

TEST(AggregatedImportance, TreatsUnratedSamplesAsImportant) {
    const Ranks short_ranks = {0.5F};
    const Ranks none;
    AggregatedImportance values;
    values.set_job(1, job(1, short_ranks, 0.9));
    EXPECT_EQ(values.value(7), 1.0F);
    EXPECT_FALSE(values.unimportant(7));
    values.set_job(2, job(1, none, 0.9));
    EXPECT_EQ(values.value(0), 0.5F) << "a job without ranks has no say";
}

}  // namespace
}  // namespace stoker::sidecar
