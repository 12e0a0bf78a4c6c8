#include "sidecar/simulate/baselines/ods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

struct AnyMayGo final {
    [[nodiscard]] bool operator()(SampleIndex /*sample*/) const { return true; }
};

std::vector<SampleIndex> refills_of(OdsCache& cache) {
    std::vector<SampleIndex> refills;
    cache.take_refills(refills);
    return refills;
}

TEST(OdsCache, ReplacesAResidentThatEveryJobHasRead) {
    OdsCache cache{100, 2, 1};
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    EXPECT_THAT(refills_of(cache), IsEmpty());
    cache.on_read(7, true);
    const auto refills = refills_of(cache);
    ASSERT_THAT(refills, ElementsAre(Not(7)));
    EXPECT_THAT(refills_of(cache), IsEmpty()) << "it is on its way";
    std::vector<SampleIndex> victims;
    const SampleIndex other = refills[0] == 8 ? 9 : 8;
    EXPECT_FALSE(cache.make_room(other, Bytes{10}, AnyMayGo{}, victims)) << "no refill";
    EXPECT_TRUE(cache.make_room(refills[0], Bytes{10}, AnyMayGo{}, victims));
    EXPECT_THAT(victims, ElementsAre(7));
}

TEST(OdsCache, RestartsTheReadCountOfARefetchedSample) {
    OdsCache cache{100, 2, 1};
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    cache.on_gone(7);
    cache.on_resident(7, Bytes{10});
    cache.on_read(7, false);
    EXPECT_THAT(refills_of(cache), IsEmpty());
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

TEST(OdsSampler, KeepsItsOrderIfItTriesNoRandomSamples) {
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
