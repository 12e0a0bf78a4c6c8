#include "sidecar/simulate/assembly.h"

#include <numeric>

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"

namespace stoker::simulate {
namespace {

TEST(Assembly, LogNormalSizesHaveTheirMean) {
    DatasetSpec dataset;
    dataset.samples = 50'000;
    dataset.sigma = 0.8;
    const auto sizes = sizes_of(dataset, 1);
    const double mean =
        static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0})) / 50'000;
    EXPECT_NEAR(mean / static_cast<double>(kib(110).count()), 1, 0.03);
}

TEST(Assembly, UsesAManifestsSizesUnchanged) {
    DatasetSpec dataset;
    dataset.sizes = {3, 1, 4};
    EXPECT_EQ(sizes_of(dataset, 1), dataset.sizes);
}

TEST(Assembly, SizesTheCacheByRecordsNotByPayload) {
    Scenario scenario;
    scenario.dataset.samples = 100;
    scenario.dataset.mean_bytes = Bytes{1};
    scenario.cache.share = 0.5;
    scenario.cache.window_share = 0.1;
    const auto parts = assemble(scenario);
    EXPECT_EQ(parts->outcome.window_bytes, Bytes{5 * domain::record_bytes(1)});
    EXPECT_EQ(parts->outcome.resident_bytes, Bytes{45 * domain::record_bytes(1)});
    EXPECT_EQ(parts->outcome.dataset_bytes, Bytes{100});
}

TEST(Assembly, CacheBytesOverrideTheCacheShare) {
    Scenario scenario;
    scenario.cache.bytes = mib(7);
    const auto parts = assemble(scenario);
    EXPECT_EQ(parts->outcome.resident_bytes, mib(7));
}

}  // namespace
}  // namespace stoker::simulate
