#include "sidecar/core/sampling/exact_sampler.h"

#include <gtest/gtest.h>

#include "sidecar/core/sampling/chunk_order.h"

namespace stoker::sidecar {
namespace {

std::vector<SampleIndex> served(Sampler& sampler, std::uint32_t rank, std::size_t count) {
    std::vector<Draw> draws;
    sampler.draw(rank, count, draws);
    std::vector<SampleIndex> samples;
    for (const Draw& draw : draws) {
        samples.push_back(draw.served);
    }
    return samples;
}

TEST(ExactSampler, DrawsTheEpochOrderWhateverIsStored) {
    const EpochShape shape{.count = 101, .seed = 6, .ranks = 3};
    ExactSampler sampler{shape};
    for (const std::uint32_t rank : {1U, 2U}) {
        sampler.begin_epoch(rank, 4, 0);
        std::vector<SampleIndex> foreseen;
        sampler.foresee(rank, 1000, foreseen);
        EXPECT_EQ(foreseen, epoch_order(shape, 4, rank));
        EXPECT_EQ(served(sampler, rank, 1000), foreseen);
    }
    EXPECT_EQ(sampler.report(1).repeated, 0U);
    EXPECT_EQ(sampler.report(2).repeated, 1U) << "rank 2 fills up the last round";
    EXPECT_EQ(sampler.report(2).requested, 34U);
}

TEST(ExactSampler, SkipsDrawsReadBeforeAResume) {
    const EpochShape shape{.count = 20, .seed = 6};
    ExactSampler sampler{shape};
    sampler.begin_epoch(0, 1, 15);
    const auto order = epoch_order(shape, 1, 0);
    EXPECT_EQ(served(sampler, 0, 100), std::vector(order.begin() + 15, order.end()));
    EXPECT_EQ(sampler.report(0).distinct, 20U);
}

TEST(ExactSampler, DrawsEachRanksPartOfACustomOrder) {
    const std::vector<std::uint32_t> chunk_of = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    const EpochShape shape{.count = 9, .seed = 8, .ranks = 2, .tail = Tail::kDrop};
    const auto order = [&](std::uint64_t epoch, std::uint32_t rank) {
        return chunk_order(chunk_of, 3, 1, shape, epoch, rank);
    };
    ExactSampler sampler{shape, order, 3};
    for (const std::uint32_t rank : {0U, 1U}) {
        sampler.begin_epoch(rank, 5, 0);
        EXPECT_EQ(served(sampler, rank, 100), order(5, rank).samples);
    }
    EXPECT_EQ(sampler.report(0).requested, 4U);
    EXPECT_EQ(sampler.report(0).skipped, 1U);
    EXPECT_EQ(sampler.group_samples(), 3U);
}

TEST(ExactSampler, ForeseesWholeGroupsOfChunks) {
    const EpochShape shape{.count = 20, .seed = 8};
    ExactSampler sampler{
        shape,
        [&](std::uint64_t epoch, std::uint32_t rank) {
            return GroupedOrder{epoch_order(shape, epoch, rank), {6, 12, 20}};
        },
        6};
    sampler.begin_epoch(0, 0, 0);
    const auto foreseen = [&](std::size_t count) {
        std::vector<SampleIndex> samples;
        sampler.foresee(0, count, samples);
        return samples.size();
    };
    EXPECT_EQ(foreseen(7), 12U);
    EXPECT_EQ(foreseen(12), 12U);
    EXPECT_EQ(foreseen(2), 2U) << "the end of its group is too far";
    served(sampler, 0, 5);
    EXPECT_EQ(foreseen(10), 15U);
    EXPECT_EQ(foreseen(100), 15U);
}

}  // namespace
}  // namespace stoker::sidecar
