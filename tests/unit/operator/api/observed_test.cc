#include <gtest/gtest.h>

#include "operator/api/job.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"

namespace stoker::control {
namespace {

TEST(ParseNode, ReadsReadinessAndItsTime) {
    const Result<Node> ready = parse_document<Node>(
        R"({"metadata": {"name": "n1"}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}})");
    ASSERT_TRUE(ready);
    EXPECT_TRUE(ready->ready);
    EXPECT_FALSE(ready->not_ready_since);
    const Result<Node> lost = parse_document<Node>(
        R"({"spec": {"unschedulable": true}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:09Z"}]}})");
    ASSERT_TRUE(lost);
    EXPECT_FALSE(lost->ready);
    EXPECT_EQ(lost->not_ready_since, WallTime{std::chrono::seconds{9}});
}

TEST(ParseNode, NodeWithoutConditionsIsNotReady) {
    EXPECT_FALSE(parse_document<Node>(R"({"metadata": {"name": "new"}})")->ready);
}

TEST(ParsePod, FindsOurContainersByName) {
    const Result<Pod> pod = parse_document<Pod>(R"({
        "metadata": {"name": "a-0-x", "labels": {"batch.kubernetes.io/job-name": "a",
                     "batch.kubernetes.io/job-completion-index": "3"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Failed",
          "conditions": [{"type": "Ready", "status": "False"},
                         {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}],
          "containerStatuses": [{"name": "mesh", "state": {"terminated": {"exitCode": 0}}},
                                {"name": "trainer", "restartCount": 0, "state": {"terminated":
                                 {"exitCode": 137, "reason": "OOMKilled", "message": "m"}}}],
          "initContainerStatuses": [{"name": "stoker-sidecar", "started": true, "ready": true,
                                     "restartCount": 2, "state": {"running": {}}},
                                    {"name": "stoker-s3", "started": false, "state": {"waiting":
                                     {"reason": "CrashLoopBackOff"}}}]}})");
    ASSERT_TRUE(pod) << pod.error().message;
    EXPECT_EQ(pod->phase, PodPhase::kFailed);
    EXPECT_EQ(pod->node_name, "n1");
    EXPECT_EQ(pod->disruption, "DeletionByTaintManager");
    EXPECT_EQ(pod->trainer.exit_code, 137);
    EXPECT_EQ(pod->trainer.reason, "OOMKilled");
    EXPECT_TRUE(pod->sidecar.started);
    EXPECT_EQ(pod->sidecar.restart_count, 2);
    EXPECT_EQ(pod->s3.waiting_reason, "CrashLoopBackOff");
    EXPECT_FALSE(pod->sidecar.exit_code);
    EXPECT_EQ(rank_of(*pod), 3);
    EXPECT_EQ(job_name_of(*pod), "a");
}

TEST(ParsePod, KeepsOnlyMetadataThatTheOperatorReads) {
    const Result<Pod> pod = parse_document<Pod>(R"({"metadata": {
        "labels": {"stoker.dev/training-job": "a", "batch.kubernetes.io/job-name": "a-a1",
                   "batch.kubernetes.io/job-completion-index": "0", "app": "x",
                   "batch.kubernetes.io/controller-uid": "u"},
        "annotations": {"stoker.dev/container": "main", "some.company/note": "text",
                        "batch.kubernetes.io/job-completion-index": "0"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a-a1",
                             "uid": "u", "controller": true}]}})");
    ASSERT_TRUE(pod) << pod.error().message;
    EXPECT_EQ(
        pod->meta.labels,
        (TextMap{
            {"batch.kubernetes.io/job-completion-index", "0"},
            {"batch.kubernetes.io/job-name", "a-a1"},
            {"stoker.dev/training-job", "a"}}));
    EXPECT_EQ(pod->meta.annotations, (TextMap{{"stoker.dev/container", "main"}}));
    EXPECT_TRUE(pod->meta.owners.empty());
}

TEST(ParsePod, ReadsWhyAPodWaits) {
    const Result<Pod> pod = parse_document<Pod>(R"({"status": {"phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
        "containerStatuses": [{"name": "trainer", "state": {"waiting":
            {"reason": "ImagePullBackOff", "message": "no such image"}}}]}})");
    ASSERT_TRUE(pod);
    EXPECT_TRUE(pod->node_directories.empty());
    EXPECT_EQ(pod->unschedulable_message, "0/3 nodes");
    EXPECT_EQ(pod->trainer.waiting_reason, "ImagePullBackOff");
    EXPECT_EQ(pod->trainer.message, "no such image");
    EXPECT_FALSE(rank_of(*pod));
}

TEST(ParsePod, ReadsMountedNodeDirectories) {
    const Result<Pod> pod = parse_document<Pod>(R"({"spec": {"volumes": [
        {"name": "run", "emptyDir": {}},
        {"name": "disk", "hostPath": {"path": "/mnt/nvme"}},
        {"name": "foreign", "csi": {"driver": "csi.example.com",
                                    "volumeAttributes": {"namespace": "ml", "uid": "no"}}},
        {"name": "train-data", "csi": {"driver": "csi.stoker.dev", "volumeAttributes":
            {"pool": "nvme", "namespace": "ml", "uid": "d1", "view": "data"}}},
        {"name": "train-owner", "csi": {"driver": "csi.stoker.dev", "volumeAttributes":
            {"pool": "nvme", "namespace": "ml", "uid": "d1", "view": "owner"}}},
        {"name": "eval", "csi": {"driver": "csi.stoker.dev", "volumeAttributes":
            {"pool": "nvme", "namespace": "data", "uid": "d2", "view": "shared"}}},
        {"name": "bare", "csi": {"driver": "csi.stoker.dev"}}]}})");
    ASSERT_TRUE(pod) << pod.error().message;
    EXPECT_EQ(pod->node_directories, (std::vector<std::string>{"/", "data/d2", "ml/d1"}));
}

TEST(ParseJob, ReadsCountsAndEnd) {
    const Result<Job> job = parse_document<Job>(
        R"({"metadata": {"name": "a-a1"}, "spec": {"suspend": true, "completions": 6},
        "status": {"active": 2, "ready": 1, "succeeded": 3, "failed": 4,
                   "startTime": "1970-01-01T00:00:05Z",
                   "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached",
                                   "lastTransitionTime": "1970-01-01T00:00:08Z"}]}})");
    ASSERT_TRUE(job);
    EXPECT_TRUE(job->suspend);
    EXPECT_EQ(job->completions, 6);
    EXPECT_EQ(job->active, 2);
    EXPECT_EQ(job->ready, 1);
    EXPECT_EQ(job->succeeded, 3);
    EXPECT_EQ(job->failed, 4);
    ASSERT_TRUE(job->end);
    EXPECT_TRUE(job->end->succeeded);
    EXPECT_EQ(job->end->at, WallTime{std::chrono::seconds{8}});
}

TEST(ParseJob, ReadsFailureBeforeTheLastPodIsGone) {
    const Result<Job> failing = parse_document<Job>(R"({"status": {"conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "PodFailurePolicy", "message": "early"}]}})");
    ASSERT_TRUE(failing && failing->end);
    EXPECT_FALSE(failing->end->succeeded);
    EXPECT_EQ(failing->end->message, "early");
    const Result<Job> failed = parse_document<Job>(R"({"status": {"conditions": [
        {"type": "FailureTarget", "status": "True", "message": "early"},
        {"type": "Failed", "status": "True", "message": "late"}]}})");
    EXPECT_EQ(failed->end->message, "late");
    EXPECT_FALSE(parse_document<Job>(
                     R"({"status": {"conditions": [{"type": "Failed", "status": "False"}]}})")
                     ->end);
}

}  // namespace
}  // namespace stoker::control
