#include "operator/controllers/trainingjob/kueue_reader.h"

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/workload/build_workload.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

Object make_object(const std::string& text) {
    Object object;
    object.raw = *Json::parse(text);
    return object;
}

Object make_class(const std::string& name, int value, bool is_default) {
    return make_object(
        R"({"metadata":{"name":")" + name + R"("},"value":)" + std::to_string(value) +
        R"(,"globalDefault":)" + (is_default ? "true" : "false") + "}");
}

// A server with Kueue and no Workloads. The watch after the list ends the test's run.
class ListsNothing final : public ApiTransport {
public:
    explicit ListsNothing(std::stop_source stop)
        : stop_(std::move(stop)) {}

    Result<ApiResponse> call(const ApiRequest&, Duration, std::stop_token) override {
        return fail(ErrorCode::kUnavailable, "this server answers streams only");
    }

    Result<ApiStreamEnd> stream(
        const ApiRequest& request, Duration, const ApiStreamSink& sink, std::stop_token) override {
        if (request.traffic != Traffic::kList) {
            stop_.request_stop();
            return fail(ErrorCode::kCancelled, "over");
        }
        sink.on_open();
        sink.on_bytes(R"({"kind":"WorkloadList","metadata":{"resourceVersion":"1"},"items":[]})");
        return ApiStreamEnd{200};
    }

private:
    std::stop_source stop_;
};

struct KueueReaderTest : ::testing::Test {
    KueueReaderTest() {
        job.meta.labels[std::string{kQueueLabel}] = "research";
        cache.workloads().run(stop.get_token());
    }

    void put_workload(const std::string& admitted, std::vector<std::string> flavors) {
        Workload workload;
        workload.meta.ns = job.meta.ns;
        workload.meta.name = workload_name(job);
        workload.flavors = std::move(flavors);
        Condition condition;
        condition.type = "Admitted";
        condition.status = admitted == "True" ? ConditionStatus::kTrue : ConditionStatus::kFalse;
        workload.conditions = {condition};
        bench.put(cache.workloads(), workload);
    }

    void put_flavor(const std::string& name, const std::string& zone) {
        bench.client.objects[{"", name}] = make_object(
            R"({"metadata":{"name":")" + name + R"("},"spec":{"nodeLabels":{"zone":")" + zone +
            R"("},"tolerations":[{"key":"gpu","operator":"Exists"}]}})");
    }

    KueueView read(bool has_attempt = false) {
        bench.client.calls.clear();
        return read_kueue(job, has_attempt, cache, bench.client);
    }

    TrainingJob job = make_running_job();
    test::ControllerBench bench;
    std::stop_source stop;
    ClusterCache cache{
        [this](const std::string&) { return std::make_unique<ListsNothing>(stop); },
        "stoker-system",
        {},
        bench.clock,
        1};
};

TEST_F(KueueReaderTest, SendsNoRequestForAJobWithoutAQueue) {
    job.meta.labels.clear();
    const KueueView view = read();
    EXPECT_TRUE(view.installed);
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(KueueReaderTest, SendsNoRequestWithoutKueue) {
    const KueueView view = read_kueue(job, false, bench.cache, bench.client);
    EXPECT_FALSE(view.installed);
    EXPECT_EQ(view.trouble, "");
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(KueueReaderTest, SendsNoRequestForAnExistingAttempt) {
    put_workload("True", {"a100"});
    const KueueView view = read(true);
    EXPECT_TRUE(view.workload.has_value());
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(KueueReaderTest, SendsNoRequestForAPendingWorkload) {
    put_workload("False", {"a100"});
    EXPECT_TRUE(read().workload.has_value());
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(KueueReaderTest, UsesThePriorityClassOfTheLabel) {
    job.meta.labels[std::string{kPriorityClassLabel}] = "urgent";
    job.spec.pod_template.priority_class_name = "pods";
    bench.client.objects[{"", "urgent"}] = make_class("urgent", 70, false);
    const KueueView view = read();
    EXPECT_EQ(view.priority.class_name, "urgent");
    EXPECT_EQ(view.priority.value, 70);
    EXPECT_EQ(view.priority.class_source, "kueue.x-k8s.io/workloadpriorityclass");
    ASSERT_EQ(bench.client.calls.size(), 1U);
    EXPECT_EQ(bench.client.calls[0].plural, "workloadpriorityclasses");
}

TEST_F(KueueReaderTest, FallsBackToThePriorityClassOfThePods) {
    job.spec.pod_template.priority_class_name = "pods";
    bench.client.listed = {make_class("other", 1, true), make_class("pods", 9, false)};
    const KueueView view = read();
    EXPECT_EQ(view.priority.class_name, "pods");
    EXPECT_EQ(view.priority.value, 9);
    EXPECT_EQ(view.priority.class_source, "scheduling.k8s.io/priorityclass");
}

// The API server's admission makes the same choice between two default classes.
TEST_F(KueueReaderTest, PicksTheLowestOfTwoDefaultPriorityClasses) {
    bench.client.listed = {
        make_class("high", 50, true), make_class("none", 2, false), make_class("low", 10, true)};
    EXPECT_EQ(read().priority.class_name, "low");
    bench.client.listed = {make_class("none", 2, false)};
    const KueueView without = read();
    EXPECT_EQ(without.priority, WorkloadPriority{});
    EXPECT_EQ(without.trouble, "");
}

TEST_F(KueueReaderTest, ReportsAMissingClass) {
    job.meta.labels[std::string{kPriorityClassLabel}] = "urgnet";
    EXPECT_EQ(read().trouble, "WorkloadPriorityClass urgnet does not exist.");
    job.meta.labels.erase(std::string{kPriorityClassLabel});
    job.spec.pod_template.priority_class_name = "podz";
    bench.client.listed = {make_class("pods", 9, true)};
    EXPECT_EQ(read().trouble, "PriorityClass podz does not exist.");
}

TEST_F(KueueReaderTest, ReportsAnUnreadableClass) {
    job.spec.pod_template.priority_class_name = "pods";
    bench.client.failure = Error{ErrorCode::kForbidden, "listing priorityclasses: 403"};
    EXPECT_EQ(read().trouble, "PriorityClass pods cannot be read: listing priorityclasses: 403.");
    bench.client.failure.reset();
    bench.client.listed = {make_object(R"({"metadata":{"name":"pods"},"value":"many"})")};
    EXPECT_THAT(read().trouble, ::testing::StartsWith("PriorityClass pods cannot be read: "));
}

TEST_F(KueueReaderTest, AdmittedJobGetsItsFlavors) {
    put_workload("True", {"a100", "spot"});
    put_flavor("a100", "east");
    put_flavor("spot", "west");
    const KueueView view = read();
    ASSERT_EQ(view.flavors.size(), 2U);
    EXPECT_EQ(view.flavors[0].node_labels, (TextMap{{"zone", "east"}}));
    EXPECT_EQ(view.flavors[1].node_labels, (TextMap{{"zone", "west"}}));
    EXPECT_EQ(view.flavors[1].tolerations.size(), 1U);
    EXPECT_EQ(view.trouble, "");
}

TEST_F(KueueReaderTest, ReportsAMissingFlavor) {
    put_workload("True", {"a100", "gone"});
    put_flavor("a100", "east");
    EXPECT_EQ(read().trouble, "ResourceFlavor gone does not exist.");
}

TEST_F(KueueReaderTest, IgnoresAWorkloadOfAnotherNamespace) {
    put_workload("True", {"a100"});
    job.meta.ns = "other";
    EXPECT_FALSE(read().workload.has_value());
}

}  // namespace
}  // namespace stoker::control
