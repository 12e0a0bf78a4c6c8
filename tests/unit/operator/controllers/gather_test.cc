#include "operator/controllers/gather.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

struct GatherTest : ::testing::Test {
    GatherTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.pods(), make_running_pod());
        bench.put(bench.cache.training_jobs(), make_running_job());
    }

    std::vector<SidecarReport> believable() {
        return believable_reports(gather_use(make_running_job(), bench.cache), bench.registry);
    }

    test::ControllerBench bench;
};

TEST_F(GatherTest, TrustsASidecarOfARunningPodOfTheJob) {
    const SessionId session = bench.attach(make_sidecar_hello());
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const std::vector<SidecarReport> reports = believable();
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].datasets.size(), 1U);
}

TEST_F(GatherTest, RejectsContradictoryReports) {
    struct Case {
        const char* name;
        std::function<void(Hello&)> spoil;
    };

    const Case cases[] = {
        {"a pod that does not exist", [](Hello& h) { h.pod = "ghost"; }},
        {"another node than its pod's", [](Hello& h) { h.node = "node-9"; }},
        {"an earlier job of the same name", [](Hello& h) { h.training_job_uid = "j0"; }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Hello hello = make_sidecar_hello();
        c.spoil(hello);
        const SessionId session = bench.attach(hello);
        ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
        EXPECT_TRUE(believable().empty());
    }
}

TEST_F(GatherTest, IgnoresPodsOfAnotherNamespace) {
    Pod stranger = make_running_pod();
    stranger.meta.ns = "other";
    stranger.meta.uid = "stranger";
    bench.put(bench.cache.pods(), stranger);
    const JobUse use = gather_use(make_running_job(), bench.cache);
    ASSERT_EQ(use.pods.size(), 1U);
    EXPECT_NE(use.pods[0]->meta.ns, "other");
}

TEST_F(GatherTest, DropsReportsOnDatasetsThatTheJobDoesNotUse) {
    Hello hello = make_sidecar_hello();
    hello.mounts = {{"train", "d1"}, {"else", "d9"}};
    const SessionId session = bench.attach(hello);
    Report report = make_sidecar_report(1);
    report.datasets.push_back(report.datasets[0]);
    report.datasets[1].name = "else";
    report.datasets[1].dataset_uid = "d9";
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    ASSERT_EQ(believable().size(), 1U);
    ASSERT_EQ(believable()[0].datasets.size(), 1U);
    EXPECT_EQ(believable()[0].datasets[0].dataset_uid, "d1");
}

// The job reads a Dataset of another namespace.
struct GatherSharedTest : GatherTest {
    GatherSharedTest() {
        bench.put(bench.cache.datasets(), make_shared_digits());
        bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    }

    // Number of datasets with trusted reports of the job's sidecar.
    std::size_t believed(const TrainingJob& job) {
        const SessionId session = bench.attach(make_sidecar_hello());
        EXPECT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
        const std::vector<SidecarReport> reports =
            believable_reports(gather_use(job, bench.cache), bench.registry);
        return reports.empty() ? 0 : reports[0].datasets.size();
    }
};

TEST_F(GatherSharedTest, TrustsReportsOnASharedDataset) {
    EXPECT_EQ(believed(make_reading_job()), 1U);
}

TEST_F(GatherSharedTest, RejectsReportsOnAnUnsharedDataset) {
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "nlp"}}));
    EXPECT_EQ(believed(make_reading_job()), 0U);
    // Reports on a dataset that the job does not name are rejected, even with a guessed uid.
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    bench.cache.datasets().store().remove({"ml", "digits"}, "900", nullptr);
    EXPECT_EQ(believed(make_running_job()), 0U);
}

TEST_F(GatherSharedTest, TrustsReportsOfARunningAttemptAfterSharingHasEnded) {
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    TrainingJob job = make_reading_job();
    job.status.datasets = {{"train", "d1"}};
    EXPECT_EQ(believed(job), 1U);
}

TEST_F(GatherSharedTest, DropsAGuestsDirectoryClaims) {
    const SessionId session = bench.attach(make_sidecar_hello());
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const JobUse use = gather_use(make_reading_job(), bench.cache);
    const DatasetReport own = believable_reports(use, bench.registry).at(0).datasets.at(0);
    EXPECT_FALSE(own.leader);
    EXPECT_EQ(own.resident_bytes, Bytes::zero());
    EXPECT_EQ(own.samples, 100U) << "the guest's counts stay for its job's own status";
    const DatasetReport told = reports_on_datasets(use, bench.registry).at(0).datasets.at(0);
    EXPECT_EQ(told.samples, 0U);
    EXPECT_EQ(told.manifest_state, ManifestState::kUnknown);
}

// Fillers of data/digits.
struct GatherFillersTest : GatherSharedTest {
    // True if the report of a filler with this hello is trusted.
    bool believes(const Hello& hello) {
        bench.put(bench.cache.filler_pods(), pod);
        const SessionId session = bench.attach(hello);
        Report report = make_sidecar_report(1);
        report.datasets[0].name = hello.mounts[0].name;
        EXPECT_TRUE(bench.registry.report(session, report, bench.now()));
        for (const JobUse& use : gather_fillers(make_shared_digits(), bench.cache)) {
            const std::vector<SidecarReport> reports = reports_on_datasets(use, bench.registry);
            if (!reports.empty() && !reports[0].datasets.empty()) {
                return reports[0].datasets[0].leader;
            }
        }
        return false;
    }

    Pod pod = make_filler_pod(make_child_filler());
};

TEST_F(GatherFillersTest, TrustsFillers) {
    EXPECT_TRUE(believes(make_filler_hello(pod)));
    const ClusterView view =
        gather_cluster(bench.cache, bench.registry, bench.nodes, 60, bench.now().wall);
    const auto filler = std::ranges::find(view.jobs, true, &JobUse::filler);
    ASSERT_NE(filler, view.jobs.end());
    EXPECT_EQ(filler->pods.size(), 1U);
    EXPECT_EQ(filler->pool.name, "nvme");
    EXPECT_EQ(view.reports.size(), 1U);
}

TEST_F(GatherFillersTest, TellWhichNodesAWarmupStillFills) {
    bench.put(bench.cache.filler_pods(), pod);
    DatasetWarmup warmup = make_digits_warmup();
    warmup.spec.ttl_seconds_after_finished = 60;
    const auto filled = [&] {
        bench.put(bench.cache.warmups(), warmup);
        const ClusterView view =
            gather_cluster(bench.cache, bench.registry, bench.nodes, 60, bench.now().wall);
        const auto filler = std::ranges::find(view.jobs, true, &JobUse::filler);
        EXPECT_EQ(filler->filling.size(), 1U);
        return filler->filled.size();
    };
    EXPECT_EQ(filled(), 0U);
    warmup.status.conditions = {
        {"Complete", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Warmed", ""}};
    warmup.status.completion_time = bench.clock.wall_now();
    EXPECT_EQ(filled(), 1U);
}

TEST_F(GatherFillersTest, HaveTheNameOfTheirDataset) {
    Dataset longest = make_shared_digits();
    longest.meta.name = std::string(200, 'd');
    longest.meta.uid = "d2";
    bench.put(bench.cache.datasets(), longest);
    const auto found = find_filled({"data", filler_training_job(longest, "nvme")}, bench.cache);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->key.name, longest.meta.name);
    EXPECT_EQ(find_filled({"data", "filler/digits/nvme"}, bench.cache)->key.name, "digits");
    EXPECT_FALSE(find_filled({"data", "filler/gone/nvme"}, bench.cache));
    EXPECT_FALSE(find_filled({"team", "filler/digits/nvme"}, bench.cache));
}

TEST_F(GatherFillersTest, IgnoresFillersOfAnotherNamespace) {
    pod.meta.ns = "ml";
    EXPECT_FALSE(believes(make_filler_hello(pod)));
    EXPECT_TRUE(gather_fillers(make_shared_digits(), bench.cache).empty());
}

TEST_F(GatherFillersTest, RejectsFillersWhosePodLacksTheFillerLabel) {
    pod.meta.labels.erase(std::string{kFillerLabel});
    EXPECT_FALSE(believes(make_filler_hello(pod)));
}

TEST_F(GatherFillersTest, RejectsFillersOnAnotherNode) {
    Hello hello = make_filler_hello(pod);
    hello.node = "node-9";
    EXPECT_FALSE(believes(hello));
}

TEST_F(GatherFillersTest, IgnoresFillersOfAnEarlierDataset) {
    Hello hello = make_filler_hello(pod);
    hello.training_job_uid = "d0";
    EXPECT_FALSE(believes(hello));
}

TEST_F(GatherFillersTest, IgnoresFillersOfADeletedPool) {
    pod.meta.annotations[std::string{kFillerPoolAnnotation}] = "gone";
    EXPECT_FALSE(believes(make_filler_hello(pod)));
}

TEST_F(GatherTest, ClusterHasEveryJobWithItsPodsAndReports) {
    bench.put(bench.cache.nodes(), make_ready_node("node-1"));
    bench.report_node("node-1");
    const SessionId session = bench.attach(make_sidecar_hello());
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const ClusterView view =
        gather_cluster(bench.cache, bench.registry, bench.nodes, 60, bench.now().wall);
    ASSERT_EQ(view.jobs.size(), 1U);
    EXPECT_EQ(view.jobs[0].pool.name, "nvme");
    EXPECT_EQ(view.jobs[0].pods.size(), 1U);
    EXPECT_EQ(view.reports.size(), 1U);
    EXPECT_EQ(view.nodes.size(), 1U);
    EXPECT_TRUE(view.programs.reports.contains("node-1"));
}

}  // namespace
}  // namespace stoker::control
