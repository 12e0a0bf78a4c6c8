#include "operator/core/workload/build_workload.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/fake_kueue.h"

namespace stoker::control {
namespace {

JobInput input_of(const TrainingJobView& view) {
    return {view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}};
}

TEST(BuildWorkload, RequestsThePodsOfTheAttempt) {
    const TrainingJobView view = make_queued_view();
    const WorkloadManifest workload = build_workload(input_of(view), {});
    EXPECT_EQ(workload.meta.owners.at(0).uid, "uid-resnet");
    EXPECT_TRUE(workload.meta.owners.at(0).controller);
    EXPECT_EQ(workload.meta.labels.at("stoker.dev/training-job"), "resnet");
    EXPECT_EQ(workload.pod_count, 2);
    EXPECT_EQ(workload.pod_template, pod_template(build_job(input_of(view))));
    EXPECT_NE(workload.pod_template.text().find("stoker-sidecar"), std::string::npos);
    EXPECT_EQ(workload.max_execution_seconds, std::nullopt);
}

TEST(BuildWorkload, PassesOnKueuesLabelsAndAnnotations) {
    TrainingJobView view = make_queued_view();
    view.job.meta.labels[std::string{kMaxExecutionLabel}] = "3600";
    view.job.meta.annotations = {
        {"provreq.kueue.x-k8s.io/ValidUntilSeconds", "60"}, {"other", "annotation"}};
    const WorkloadManifest workload = build_workload(input_of(view), {});
    EXPECT_EQ(workload.max_execution_seconds, 3600);
    EXPECT_EQ(workload.meta.annotations.at("provreq.kueue.x-k8s.io/ValidUntilSeconds"), "60");
    EXPECT_FALSE(workload.meta.annotations.contains("other"));
    for (const std::string nonsense : {"0", "-1", "soon", "3600s", "2147483648", ""}) {
        view.job.meta.labels[std::string{kMaxExecutionLabel}] = nonsense;
        EXPECT_EQ(build_workload(input_of(view), {}).max_execution_seconds, std::nullopt)
            << nonsense;
    }
}

TEST(WorkloadDigest, ChangesWithTheFieldsThatKueueReads) {
    const TrainingJobView view = make_queued_view();
    const std::string digest = workload_digest(input_of(view));
    const auto changes = [&digest](auto change) {
        TrainingJobView other = make_queued_view();
        change(other);
        return workload_digest(input_of(other)) != digest;
    };
    EXPECT_TRUE(changes([](auto& v) { v.job.meta.labels[std::string{kQueueLabel}] = "other"; }));
    EXPECT_TRUE(
        changes([](auto& v) { v.job.meta.labels[std::string{kPriorityClassLabel}] = "high"; }));
    EXPECT_TRUE(changes([](auto& v) { v.job.spec.trainer.node_count = 3; }));
    EXPECT_TRUE(changes([](auto& v) { v.job.spec.trainer.resources.requests["cpu"] = "3"; }));
    EXPECT_TRUE(changes([](auto& v) { v.settings.sidecar_resources.requests["cpu"] = "3"; }));
    EXPECT_TRUE(changes([](auto& v) { v.job.spec.pod_template.node_selector["gpu"] = "h100"; }));
    EXPECT_FALSE(changes([](auto& v) { v.job.spec.trainer.image = "train:2"; }));
    EXPECT_FALSE(changes([](auto& v) { v.settings.sidecar_image = "sidecar:2"; }));
}

TEST(WorkloadDigest, IsTheSameForAllAttempts) {
    const TrainingJobView view = make_queued_view();
    const std::vector<Holding> holdings = {{"nvme", "n1", "uid-imagenet", gib(1), {}}};
    JobInput later = input_of(view);
    later.attempt = 7;
    later.active_deadline_seconds = 5;
    later.holdings = holdings;
    later.placement.node_selector["gpu"] = "a100";
    EXPECT_EQ(workload_digest(later), workload_digest(input_of(view)));
}

}  // namespace
}  // namespace stoker::control
