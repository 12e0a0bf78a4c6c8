#include "sidecar/simulate/baselines/quiver.h"

#include <gtest/gtest.h>

#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::simulate {
namespace {

TEST(QuiverSampler, ServesResidentsAmongTheNextTenBatchesFirst) {
    test::NodeContents node;
    QuiverSampler sampler{node, 100, 10, 3};
    sampler.begin_epoch(0, 0, 0);
    std::vector<SampleIndex> order;
    sampler.foresee(0, 100, order);
    node.store(order[19]);
    node.store(order[20]);  // beyond ten batches of two
    std::vector<Draw> draws;
    sampler.draw(0, 2, draws);
    EXPECT_EQ(draws[0].served, order[19]);
    EXPECT_EQ(draws[1].served, order[0]);
}

TEST(QuiverSampler, ReadsPostponedSamplesLaterInTheEpoch) {
    test::NodeContents node;
    QuiverSampler sampler{node, 100, 10, 3};
    node.store(5);
    sampler.begin_epoch(0, 0, 0);
    std::vector<Draw> draws;
    for (int i = 0; i < 50; ++i) {
        sampler.draw(0, 2, draws);
    }
    std::vector<bool> seen(100);
    for (const Draw& draw : draws) {
        EXPECT_FALSE(seen[draw.served]);
        seen[draw.served] = true;
    }
    EXPECT_EQ(draws.size(), 100U);
}

}  // namespace
}  // namespace stoker::simulate
