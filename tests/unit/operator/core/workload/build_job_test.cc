#include "operator/core/workload/build_job.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

JobInput input_of(const TrainingJobView& view) {
    return {view.job, view.datasets.datasets, view.pool, view.settings, 2, {}, {}};
}

TEST(BuildJob, AttemptNamesAreDeterministic) {
    const TrainingJobView view = make_view();
    const JobManifest job = build_job(input_of(view));
    EXPECT_EQ(job.meta.name, "resnet-a2");
    EXPECT_EQ(job.meta.ns, "team");
    EXPECT_EQ(attempt_of(job.meta), 2);
    EXPECT_EQ(job.meta.owners.at(0).uid, "uid-resnet");
    EXPECT_EQ(job.node_count, 2);
    EXPECT_EQ(job.pod.labels.at("stoker.dev/training-job"), "resnet");
    EXPECT_EQ(job.pod.labels.at("stoker.dev/attempt"), "2");
    EXPECT_EQ(build_job(input_of(view)), job);
}

TEST(BuildJob, KeepsTheLongestNameWithinAHostName) {
    const TrainingJob job = make_training_job(std::string(52, 'n'));
    EXPECT_LE((job_name(job, 9999) + "-9999").size(), 63U);
    EXPECT_LE(service_name(job).size(), 63U);
}

TEST(BuildJob, LeavesQueueLabelsOutOfTheJob) {
    TrainingJob queued = make_training_job();
    queued.meta.labels = {{"kueue.x-k8s.io/queue-name", "vision"}, {"other", "label"}};
    const TrainingJobView view = make_view(queued);
    const JobManifest job = build_job(input_of(view));
    EXPECT_FALSE(job.meta.labels.contains("kueue.x-k8s.io/queue-name"));
    EXPECT_FALSE(job.meta.labels.contains("other"));
}

TEST(BuildJob, FollowsThePlacementUnlessTheTemplateOverridesIt) {
    TrainingJobView view = make_view();
    view.job.spec.pod_template.node_selector["gpu"] = "h100";
    view.job.spec.pod_template.tolerations = {Json::parse(R"({"key":"gpu"})").value()};
    JobInput input = input_of(view);
    input.placement.node_selector = {{"gpu", "a100"}, {"zone", "a"}};
    input.placement.tolerations = {
        Json::parse(R"({"key":"gpu"})").value(), Json::parse(R"({"key":"spot"})").value()};
    const PodManifest pod = build_job(input).pod;
    EXPECT_EQ(pod.node_selector, (TextMap{{"gpu", "h100"}, {"zone", "a"}}));
    EXPECT_EQ(pod.tolerations.size(), 2U);
}

TEST(ProcessesPerNode, CountsGpusOrCpusOfTheResources) {
    struct Case {
        std::string wanted;
        Resources resources;
        std::int64_t count;
    };

    const Resources gpus{{{"nvidia.com/gpu", "8"}, {"cpu", "96"}}, {}};
    const Resources cpus{{}, {{"cpu", "3500m"}}};
    const std::vector<Case> cases = {
        {"auto", gpus, 8},
        {"gpu", gpus, 8},
        {"cpu", gpus, 96},
        {"4", gpus, 4},
        {"auto", cpus, 1},
        {"cpu", cpus, 3},
        {"gpu", cpus, 1},
        {"auto", {{{"amd.com/gpu", "2"}, {"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "1"}}}, 3},
        {"auto", {{{"nvidia.com/gpu", "lots"}}, {}}, 1},
        {"auto", {}, 1},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.wanted);
        TrainerSpec trainer;
        trainer.processes_per_node = c.wanted;
        trainer.resources = c.resources;
        EXPECT_EQ(processes_per_node(trainer), c.count);
    }
}

TEST(PreferredNodes, WeighsNodesByTheBytesOfTheJobsDatasets) {
    const TrainingJobView view = make_view();
    const std::vector<Holding> holdings = {
        {"nvme", "n1", "uid-imagenet", gib(10), {}},
        {"nvme", "n2", "uid-imagenet", gib(40), {}},
        {"nvme", "n3", "uid-other", gib(99), {}},
        {"ssd", "n4", "uid-imagenet", gib(99), {}},
        {"nvme", "n5", "uid-imagenet", Bytes::zero(), {}},
        {"nvme", "n6", "uid-imagenet", Bytes{1}, {}}};
    const std::vector<PreferredNode> nodes =
        preferred_nodes(view.datasets.datasets, "nvme", holdings);
    EXPECT_EQ(nodes, (std::vector<PreferredNode>{{"n2", 100}, {"n1", 25}, {"n6", 1}}));
}

TEST(PreferredNodes, NamesAtMostTwenty) {
    const TrainingJobView view = make_view();
    std::vector<Holding> holdings;
    for (int i = 0; i < 30; ++i) {
        holdings.push_back({"nvme", "n" + std::to_string(i), "uid-imagenet", gib(1), {}});
    }
    EXPECT_EQ(preferred_nodes(view.datasets.datasets, "nvme", holdings).size(), 20U);
}

TEST(BuildService, SelectsTheRanksOfEveryAttempt) {
    const ServiceManifest service = build_service(make_training_job());
    EXPECT_EQ(service.meta.name, "resnet-ranks");
    EXPECT_EQ(service.selector, (TextMap{{"stoker.dev/training-job", "resnet"}}));
    EXPECT_EQ(service.meta.owners.at(0).kind, "TrainingJob");
}

TEST(AttemptOf, IsZeroWithoutAValidLabel) {
    ObjectMeta meta;
    EXPECT_EQ(attempt_of(meta), 0);
    for (const std::string text : {"", "x", "-1", "0", "1x", "99999999999999999999"}) {
        meta.labels["stoker.dev/attempt"] = text;
        EXPECT_EQ(attempt_of(meta), 0) << text;
    }
    meta.labels["stoker.dev/attempt"] = "12";
    EXPECT_EQ(attempt_of(meta), 12);
}

}  // namespace
}  // namespace stoker::control
