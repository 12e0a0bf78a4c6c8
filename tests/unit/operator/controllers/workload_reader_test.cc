#include "operator/controllers/trainingjob/workload_reader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/gather.h"
#include "operator/core/workload/foreign_job.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kSpec =
    R"({"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"dep"},
    "trainer":{"image":"i","numNodes":2},"datasets":[{"name":"digits","datasetRef":{"name":"digits"}}]})";

struct WorkloadReaderTest : ::testing::Test {
    WorkloadReaderTest() {
        bench.parts.adopts_workloads = true;
        put_workload("dep", "{}");
    }

    void put_workload(const std::string& uid, const std::string& status) {
        const Json json =
            Json::parse(
                R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web",
            "namespace":"ml","uid":")" +
                uid + R"("},"spec":{"replicas":2},"status":)" + status + "}")
                .value();
        bench.client.objects[{"ml", "web"}] = read_object(json).value();
    }

    Pod make_foreign_pod(const std::string& spec = kSpec) {
        Pod pod;
        pod.meta.ns = "ml";
        pod.meta.name = "web-1";
        pod.meta.uid = "pod";
        pod.meta.labels["stoker.dev/training-job"] = key.name;
        pod.meta.annotations["stoker.dev/workload"] = spec;
        pod.phase = PodPhase::kRunning;
        return pod;
    }

    Status adopt() { return reader().adopt(key); }

    WorkloadReader& reader() {
        if (!reader_) {
            reader_.emplace(bench.parts);
        }
        return *reader_;
    }

    const ObjectKey key{"ml", "deployment-web"};
    test::ControllerBench bench;
    std::optional<WorkloadReader> reader_;
};

TEST_F(WorkloadReaderTest, CreatesTheTrainingJobThatThePodNames) {
    bench.put(bench.cache.pods(), make_foreign_pod());
    ASSERT_TRUE(adopt());
    ASSERT_EQ(bench.client.count("create"), 1U);
    const TrainingJob made = parse_document<TrainingJob>(bench.client.calls.back().body).value();
    EXPECT_EQ(made.meta.key(), key);
    EXPECT_EQ(made.spec.workload_ref->uid, "dep");
    ASSERT_EQ(made.meta.owners.size(), 1U);
    EXPECT_FALSE(made.meta.owners[0].controller);
}

TEST_F(WorkloadReaderTest, CreatesNothingWithoutTheWebhook) {
    bench.parts.adopts_workloads = false;
    bench.put(bench.cache.pods(), make_foreign_pod());
    ASSERT_TRUE(adopt());
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(WorkloadReaderTest, IgnoresEndedPodsAndPodsOfNoOrAnotherWorkload) {
    std::string other = kSpec;
    other.replace(other.find(R"("name":"web")"), 12, R"("name":"api")");
    std::string none = kSpec;
    none.replace(none.find("workloadRef"), 11, "nothing");
    for (const std::string& spec : {std::string{}, std::string{"{"}, other, none}) {
        bench.put(bench.cache.pods(), make_foreign_pod(spec));
        ASSERT_TRUE(adopt());
    }
    Pod ended = make_foreign_pod();
    ended.phase = PodPhase::kSucceeded;
    bench.put(bench.cache.pods(), ended);
    ASSERT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 0U);
}

TEST_F(WorkloadReaderTest, DoesNotDescribeAWorkloadThatIsGone) {
    bench.put(bench.cache.pods(), make_foreign_pod());
    put_workload("newer", "{}");
    ASSERT_TRUE(adopt());
    bench.client.objects.clear();
    ASSERT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 0U);
}

TEST_F(WorkloadReaderTest, RepeatsACreateAfterFiveMinutes) {
    bench.put(bench.cache.pods(), make_foreign_pod());
    ASSERT_TRUE(adopt());
    ASSERT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 1U);
    bench.clock.advance(minutes{6});
    ASSERT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 2U);
}

TEST_F(WorkloadReaderTest, RetriesACreateAfterATransientFailure) {
    bench.put(bench.cache.pods(), make_foreign_pod());
    bench.client.refused = {"trainingjobs", Error{ErrorCode::kUnavailable, "away"}};
    EXPECT_FALSE(adopt());
    bench.client.refused.reset();
    EXPECT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 2U);
}

TEST_F(WorkloadReaderTest, DoesNotRetryARefusedCreateAtOnce) {
    bench.put(bench.cache.pods(), make_foreign_pod());
    bench.client.refused = {"trainingjobs", Error{ErrorCode::kForbidden, "a quota"}};
    EXPECT_TRUE(adopt());
    EXPECT_TRUE(adopt());
    EXPECT_EQ(bench.client.count("create"), 1U);
}

TEST_F(WorkloadReaderTest, ReadsTheWorkloadsPodsAndEnd) {
    const TrainingJob job =
        read_document<TrainingJob>(
            foreign_body("ml", {"apps/v1", "Deployment", "web", "dep"}, Json::parse(kSpec).value()))
            .value();
    EXPECT_EQ(reader().read(job).pod_count, 2);
    EXPECT_FALSE(reader().read(job).end);
    EXPECT_EQ(bench.client.count("get"), 1U) << "an answer is kept for ten seconds";
    put_workload("dep", R"({"conditions":[{"type":"Failed","status":"True"}]})");
    bench.clock.advance(seconds{11});
    EXPECT_TRUE(reader().read(job).end);
    put_workload("newer", "{}");
    bench.clock.advance(seconds{11});
    EXPECT_TRUE(reader().read(job).end) << "another workload of the same name does not count";
}

TEST_F(WorkloadReaderTest, ReportsOfItsPodsCountUnderTheTrainingJobsUid) {
    TrainingJob job = make_running_job();
    job.meta.name = key.name;
    job.spec.workload_ref = WorkloadRef{"apps/v1", "Deployment", "web", "dep"};
    bench.put(bench.cache.training_jobs(), job);
    bench.put(bench.cache.datasets(), make_digits());
    bench.put(bench.cache.pools(), make_nvme());
    Pod pod = make_foreign_pod();
    pod.node_name = "node-1";
    bench.put(bench.cache.pods(), pod);
    Hello hello = make_sidecar_hello();
    hello.pod = pod.meta.name;
    hello.training_job = key.name;
    hello.training_job_uid = "dep";
    const SessionId session = bench.attach(hello);
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const JobUse use = gather_use(job, bench.cache);
    const auto reports = believable_reports(use, bench.registry);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].training_job_uid, job.meta.uid);
    job.spec.workload_ref->uid = "another";
    const JobUse other = gather_use(job, bench.cache);
    EXPECT_TRUE(believable_reports(other, bench.registry).empty());
}

}  // namespace
}  // namespace stoker::control
