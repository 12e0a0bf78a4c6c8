#include "operator/controllers/trainingjob/diagnosis_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct DiagnosisFinderTest : ::testing::Test {
    DiagnosisFinderTest() { job.meta.created_at = bench.clock.wall_now(); }

    std::string find() { return finder.find({"ml", "mnist"}, {job}, pods); }

    void tell(
        const std::string& message,
        const std::string& when,
        const std::string& reason = "FailedCreate") {
        Object event;
        event.raw = *Json::parse(
            R"({"message":")" + message + R"(","reason":")" + reason + R"(","lastTimestamp":")" +
            when + R"("})");
        bench.client.listed.push_back(event);
    }

    // Puts the job's pod on its node `since` ago, with its volumes unmounted.
    void wait_for_volumes(Duration since) {
        Pod pod = make_running_pod();
        pod.phase = PodPhase::kPending;
        pod.ready = false;
        pod.meta.created_at = bench.clock.wall_now() - since;
        pod.sidecar.waiting_reason = "PodInitializing";
        pod.trainer.waiting_reason = "PodInitializing";
        pods = {pod};
    }

    test::ControllerBench bench;
    DiagnosisFinder finder{bench.client, bench.clock};
    Job job = make_child_job();
    std::vector<Pod> pods;
};

TEST_F(DiagnosisFinderTest, GivesANewJobTimeToCreateItsPods) {
    tell("forbidden", "2026-01-31T12:00:01Z");
    EXPECT_EQ(find(), "");
    EXPECT_EQ(bench.client.count("list"), 0U);
}

TEST_F(DiagnosisFinderTest, QuotesTheNewestEventOfAJobWithoutPods) {
    tell("the old reason", "2026-01-31T12:00:01Z");
    tell("violates PodSecurity", "2026-01-31T12:00:03Z");
    tell("an even older one", "2026-01-31T12:00:00Z");
    bench.clock.advance(seconds{4});
    EXPECT_THAT(find(), HasSubstr("violates PodSecurity"));
    EXPECT_EQ(bench.client.calls.back().body, "involvedObject.uid=b1,reason=FailedCreate");
}

TEST_F(DiagnosisFinderTest, LimitsItsRequests) {
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

TEST_F(DiagnosisFinderTest, ClearsWhenPodsAppear) {
    tell("forbidden", "2026-01-31T12:00:01Z");
    bench.clock.advance(seconds{4});
    find();
    pods = {make_running_pod()};
    EXPECT_EQ(find(), "");
}

TEST_F(DiagnosisFinderTest, IgnoresSuspendedAndFinishedJobs) {
    bench.clock.advance(seconds{4});
    job.suspend = true;
    EXPECT_EQ(find(), "");
    job.suspend = false;
    job.end = JobEnd{};
    EXPECT_EQ(find(), "");
    EXPECT_EQ(bench.client.count("list"), 0U);
}

TEST_F(DiagnosisFinderTest, QuotesTheMountErrorOfAPod) {
    wait_for_volumes(seconds{11});
    tell("Successfully assigned", "2026-01-31T12:00:09Z", "Scheduled");
    tell(
        "MountVolume.SetUp failed for volume \\\"train\\\" : rpc error: code = FailedPrecondition "
        "desc = pool nvme: /mnt/nvme on node node-1 is not empty",
        "2026-01-31T12:00:04Z",
        "FailedMount");
    tell(
        "Unable to attach or mount volumes: unmounted volumes=[train]",
        "2026-01-31T12:00:08Z",
        "FailedMount");
    EXPECT_EQ(
        find(),
        "Pod mnist-a1-0-x waits on node node-1 for its volumes: pool nvme: /mnt/nvme on node "
        "node-1 is not empty");
    EXPECT_EQ(bench.client.calls.back().body, "involvedObject.uid=pod-uid");
    find();
    EXPECT_EQ(bench.client.count("list"), 1U) << "Events are requested only every few seconds";
}

TEST_F(DiagnosisFinderTest, QuotesTheKubeletsSummaryIfNoOtherEventExplains) {
    wait_for_volumes(seconds{11});
    tell("Unable to attach or mount volumes: x", "2026-01-31T12:00:08Z", "FailedMount");
    EXPECT_THAT(find(), HasSubstr("Unable to attach"));
}

TEST_F(DiagnosisFinderTest, IgnoresPodsThatStartOrReportAnError) {
    tell("x", "2026-01-31T12:00:08Z", "FailedMount");
    wait_for_volumes(seconds{10});
    EXPECT_EQ(find(), "") << "the pod is young";
    wait_for_volumes(seconds{11});
    pods[0].node_name = "";
    EXPECT_EQ(find(), "") << "the pod is not scheduled";
    wait_for_volumes(seconds{11});
    pods[0].sidecar.waiting_reason = "ImagePullBackOff";
    EXPECT_EQ(find(), "");
    wait_for_volumes(seconds{11});
    pods[0].sidecar.started = true;
    EXPECT_EQ(find(), "");
    wait_for_volumes(seconds{11});
    pods[0].phase = PodPhase::kRunning;
    EXPECT_EQ(find(), "");
    EXPECT_EQ(bench.client.count("list"), 0U);
}

TEST_F(DiagnosisFinderTest, ClearsWhenThePodStarts) {
    wait_for_volumes(seconds{11});
    tell("x", "2026-01-31T12:00:08Z", "FailedMount");
    EXPECT_THAT(find(), HasSubstr(": x"));
    pods = {make_running_pod()};
    EXPECT_EQ(find(), "");
}

TEST(SayUnmounted, ExplainsAMissingDriver) {
    EXPECT_EQ(
        say_unmounted(
            make_running_pod(),
            "MountVolume.SetUp failed for volume \"train\" : kubernetes.io/csi: mounter.SetUpAt "
            "failed to get CSI client: driver name csi.stoker.dev not found in the list of "
            "registered CSI drivers"),
        "Pod mnist-a1-0-x waits on node node-1 for its volumes: the node program (stoker-node) "
        "does "
        "not run there, or has not registered with the kubelet yet; check the pods of its "
        "DaemonSet");
}

TEST(SayUnmounted, KeepsMessagesAboutOtherDriversButCutsLongOnes) {
    EXPECT_THAT(
        say_unmounted(make_running_pod(), "driver name csi.other not found in the list of ..."),
        HasSubstr("csi.other not found"));
    EXPECT_LT(say_unmounted(make_running_pod(), std::string(5000, 'x')).size(), 1200U);
}

TEST_F(DiagnosisFinderTest, RefusalOfTheJobHoldsUntilItIsCreated) {
    const ObjectKey key{"ml", "mnist"};
    EXPECT_TRUE(finder.note_refusal(key, {ErrorCode::kInvalidArgument, "spec.x: bad"}));
    EXPECT_FALSE(finder.note_refusal(key, {ErrorCode::kInvalidArgument, "spec.x: bad"}));
    EXPECT_THAT(finder.find(key, {}, {}), HasSubstr("spec.x: bad"));
    EXPECT_EQ(finder.find(key, {job}, {make_running_pod()}), "");
    EXPECT_EQ(finder.find(key, {}, {}), "");
}

}  // namespace
}  // namespace stoker::control
