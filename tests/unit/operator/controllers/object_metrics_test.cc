#include "operator/controllers/object_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace stoker::control
