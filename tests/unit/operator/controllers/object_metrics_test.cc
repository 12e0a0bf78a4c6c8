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

TEST(ObjectMetrics, CountsJobsByState) {
    test::ControllerBench bench;
    const auto put = [&](const std::string& name, const std::string& state) {
        TrainingJob job = make_running_job();
        job.status.conditions.clear();
        job.meta.name = name;
        Condition& finished = job.status.conditions.emplace_back();
        finished.type = "Finished";
        finished.reason = state;
        bench.put(bench.cache.training_jobs(), job);
    };
    put("a", "Running");
    put("b", "Running");
    put("c", "Queued");
    TrainingJob unseen = make_running_job();
    unseen.meta.name = "d";
    unseen.status.conditions.clear();
    bench.put(bench.cache.training_jobs(), unseen);
    const std::string told = expose_objects(bench.cache, {});
    EXPECT_THAT(told, HasSubstr("stoker_jobs{state=\"Running\"} 2\n"));
    EXPECT_THAT(told, HasSubstr("stoker_jobs{state=\"Queued\"} 1\n"));
    EXPECT_THAT(told, HasSubstr("stoker_jobs{state=\"Unknown\"} 1\n"));
    EXPECT_THAT(told, HasSubstr("stoker_jobs{state=\"Failed\"} 0\n"));
}

TEST(ObjectMetrics, AddsUpWarmupsByState) {
    test::ControllerBench bench;
    const auto put = [&](const std::string& name, const std::string& state, std::int64_t warmed) {
        DatasetWarmup warmup;
        warmup.meta.ns = "data";
        warmup.meta.name = name;
        warmup.status.columns.state = state;
        warmup.status.total_bytes = 100;
        warmup.status.bytes_warmed = warmed;
        bench.put(bench.cache.warmups(), warmup);
    };
    put("a", "Running", 30);
    put("b", "Running", 60);
    put("c", "Complete", 100);
    const std::string told = expose_objects(bench.cache, {});
    EXPECT_THAT(told, HasSubstr("stoker_warmups{state=\"Running\"} 2\n"));
    EXPECT_THAT(told, HasSubstr("stoker_warmup_remaining_bytes{state=\"Running\"} 110\n"));
    EXPECT_THAT(told, HasSubstr("stoker_warmup_warmed_bytes{state=\"Complete\"} 100\n"));
    EXPECT_THAT(told, HasSubstr("stoker_warmups{state=\"Pending\"} 0\n"));
}

}  // namespace
}  // namespace stoker::control
