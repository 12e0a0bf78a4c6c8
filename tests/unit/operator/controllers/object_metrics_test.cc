#include "operator/controllers/object_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ObjectMetrics, CountsFillersByDataset) {
    test::ControllerBench bench;
    Job waits = make_child_filler("node-1");
    Job runs = make_child_filler("node-2");
    runs.ready = 1;
    bench.put(bench.cache.filler_jobs(), waits);
    bench.put(bench.cache.filler_jobs(), runs);
    const std::string told = expose_objects(bench.cache, {});
    for (const char* ready : {"true", "false"}) {
        EXPECT_THAT(
            told,
            HasSubstr(fmt::format(
                R"(stoker_fillers{{namespace="data",dataset="digits",ready="{}"}} 1)", ready)));
    }
}

TEST(ObjectMetrics, PeerNodesAreAbsentWithoutAGroup) {
    test::ControllerBench bench;
    Dataset shared = make_digits();
    shared.meta.name = "shared";
    shared.status.peers = DatasetPeersStatus{.nodes = 2};
    bench.put(bench.cache.datasets(), shared);
    bench.put(bench.cache.datasets(), make_digits());
    const std::string told = expose_objects(bench.cache, {});
    EXPECT_THAT(told, HasSubstr(R"(stoker_dataset_bytes{namespace="ml",dataset="digits"})"));
    EXPECT_THAT(told, HasSubstr(R"(stoker_dataset_peer_nodes{namespace="ml",dataset="shared"} 2)"));
    EXPECT_THAT(
        told, Not(HasSubstr(R"(stoker_dataset_peer_nodes{namespace="ml",dataset="digits"})")));
}

}  // namespace
}  // namespace stoker::control
