#include "operator/controllers/trainingjob/trouble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct TroubleFinderTest : ::testing::Test {
    TroubleFinderTest() { job.meta.created_at = bench.clock.wall_now(); }

    std::string find() { return finder.find({"ml", "mnist"}, {job}, pods); }

    void tell(const std::string& message, const std::string& when) {
        Object event;
        event.raw =
            *Json::parse(R"({"message":")" + message + R"(","lastTimestamp":")" + when + R"("})");
        bench.client.listed.push_back(event);
    }

    test::ControllerBench bench;
    TroubleFinder finder{bench.client, bench.clock};
    Job job = make_child_job();
    std::vector<Pod> pods;
};

TEST_F(TroubleFinderTest, GivesANewJobTimeToMakeItsPods) {
    tell("forbidden", "2026-01-31T12:00:01Z");
    EXPECT_EQ(find(), "");
    EXPECT_EQ(bench.client.count("list"), 0U);
}

TEST_F(TroubleFinderTest, QuotesTheNewestEventOfAJobWithoutPods) {
    tell("the old reason", "2026-01-31T12:00:01Z");
    tell("violates PodSecurity", "2026-01-31T12:00:03Z");
    tell("an even older one", "2026-01-31T12:00:00Z");
    bench.clock.advance(seconds{4});
    EXPECT_THAT(find(), HasSubstr("violates PodSecurity"));
    EXPECT_EQ(bench.client.calls.back().body, "involvedObject.uid=b1,reason=FailedCreate");
}

TEST_F(TroubleFinderTest, AsksNowAndThenOnly) {
    tell("forbidden", "2026-01-31T12:00:01Z");
    bench.clock.advance(seconds{4});
    find();
    bench.clock.advance(seconds{9});
    EXPECT_THAT(find(), HasSubstr("forbidden"));
    EXPECT_EQ(bench.client.count("list"), 1U);
    bench.clock.advance(seconds{2});
    find();
    EXPECT_EQ(bench.client.count("list"), 2U);
}

TEST_F(TroubleFinderTest, ForgetsWhenPodsAppear) {
    tell("forbidden", "2026-01-31T12:00:01Z");
    bench.clock.advance(seconds{4});
    find();
    pods = {make_running_pod()};
    EXPECT_EQ(find(), "");
}

TEST_F(TroubleFinderTest, DoesNotWonderAboutSuspendedAndFinishedJobs) {
    bench.clock.advance(seconds{4});
    job.suspend = true;
    EXPECT_EQ(find(), "");
    job.suspend = false;
    job.end = JobEnd{};
    EXPECT_EQ(find(), "");
    EXPECT_EQ(bench.client.count("list"), 0U);
}

TEST_F(TroubleFinderTest, ARefusalOfTheJobItselfStandsUntilThereIsOne) {
    const ObjectKey key{"ml", "mnist"};
    EXPECT_TRUE(finder.note_refusal(key, {ErrorCode::kInvalidArgument, "spec.x: bad"}));
    EXPECT_FALSE(finder.note_refusal(key, {ErrorCode::kInvalidArgument, "spec.x: bad"}));
    EXPECT_THAT(finder.find(key, {}, {}), HasSubstr("spec.x: bad"));
    EXPECT_EQ(finder.find(key, {job}, {make_running_pod()}), "");
    EXPECT_EQ(finder.find(key, {}, {}), "");
}

}  // namespace
}  // namespace stoker::control
