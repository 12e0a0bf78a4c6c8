#include "sidecar/simulate/baselines/ods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(OdsCache, GivesUpAResidentThatEveryJobHasReadAndRefills) {
    OdsCache cache{100, 2, 1};
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    BackgroundWork::Work work;
    cache.take_work(work);
    EXPECT_THAT(work.drops, IsEmpty());
    cache.on_read(7, true);
    cache.take_work(work);
    EXPECT_THAT(work.drops, ElementsAre(7));
    EXPECT_THAT(work.fetches, ElementsAre(Not(7)));
}

TEST(OdsCache, CountsReadsAnewWhenASampleComesBack) {
    OdsCache cache{100, 2, 1};
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    cache.on_gone(7);
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    BackgroundWork::Work work;
    cache.take_work(work);
    EXPECT_THAT(work.drops, IsEmpty());
}

TEST(OdsSampler, PrefersAnUnreadResident) {
    OdsCache cache{1000, 2, 1};
    cache.on_resident(42, Bytes{10});
    OdsSampler sampler{cache, 1000, 12, 3};
    sampler.begin_epoch(0, 0, 0);
    std::vector<Draw> draws;
    sampler.draw(0, 2, draws);
    EXPECT_EQ(draws[0].served, 42U);
    EXPECT_NE(draws[1].served, 42U) << "it has been read in this epoch";
}

TEST(OdsSampler, ServesItsOwnOrderWithoutLooks) {
    OdsCache cache{1000, 2, 1};
    cache.on_resident(42, Bytes{10});
    OdsSampler sampler{cache, 1000, 0, 3};
    sampler.begin_epoch(0, 0, 0);
    std::vector<SampleIndex> expected;
    sampler.foresee(0, 1000, expected);
    std::vector<Draw> draws;
    sampler.draw(0, 1000, draws);
    for (std::size_t i = 0; i < draws.size(); ++i) {
        ASSERT_EQ(draws[i].served, expected[i]);
    }
}

}  // namespace
}  // namespace stoker::simulate
