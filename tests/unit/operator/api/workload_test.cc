#include "operator/api/workload.h"

#include <cpprest/json.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

constexpr const char* kAdmitted = R"({
    "metadata": {"name": "trainingjob-a", "namespace": "team", "uid": "u", "resourceVersion": "7",
                 "generation": 2},
    "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 2}]},
    "status": {
        "conditions": [
            {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "m",
             "lastTransitionTime": "1970-01-01T00:00:07Z", "observedGeneration": 1},
            {"type": "PodsReady", "status": "True", "reason": "PodsReady", "message": "m",
             "lastTransitionTime": "1970-01-01T00:00:09Z"}],
        "admission": {"clusterQueue": "c", "podSetAssignments": [
            {"name": "main", "flavors": {"cpu": "b", "memory": "a", "pods": "b"}}]},
        "admissionChecks": [{"name": "prov", "state": "Ready", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:08Z",
            "podSetUpdates": [
                {"name": "main", "annotations": {"x": "1"}, "tolerations": [{"key": "k"}]},
                {"name": "others", "annotations": {"y": "1"}}]}],
        "requeueState": {"count": 1},
        "accumulatedPastExexcutionTimeSeconds": 5}})";

TEST(Workload, ReadsKueuesAssignment) {
    const Result<Workload> workload = parse_document<Workload>(kAdmitted);
    ASSERT_TRUE(workload) << workload.error().message;
    EXPECT_EQ(workload->flavors, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(is_true(workload->conditions, "QuotaReserved"));
    EXPECT_TRUE(workload->has_checks);
    EXPECT_EQ(workload->check_placement.annotations, (TextMap{{"x", "1"}}));
    EXPECT_EQ(workload->check_placement.tolerations.size(), 1U);
    EXPECT_EQ(workload->past_execution_seconds, 5);
}

TEST(Workload, AdmissionBodyHasTheManagersFieldsAndTheVersionRead) {
    Result<Workload> workload = parse_document<Workload>(kAdmitted);
    ASSERT_TRUE(workload);
    const auto kept = admission_body(*workload).value();
    EXPECT_EQ(kept.at("metadata").at("resourceVersion").as_string(), "7");
    EXPECT_EQ(kept.at("metadata").at("uid").as_string(), "u");
    const auto& status = kept.at("status");
    EXPECT_EQ(status.at("conditions").size(), 1U) << "PodsReady is another manager's";
    EXPECT_EQ(status.at("admission").at("clusterQueue").as_string(), "c");
    EXPECT_EQ(status.at("admissionChecks").size(), 1U);
    EXPECT_EQ(status.at("requeueState").at("count").as_integer(), 1);
    EXPECT_EQ(status.at("accumulatedPastExexcutionTimeSeconds").as_integer(), 5);
    workload->admission = Json{};
    const auto released = admission_body(*workload).value();
    EXPECT_FALSE(released.at("status").has_field("admission"));
}

TEST(Workload, ConditionBodyHasOneConditionOnly) {
    const Result<Workload> workload = parse_document<Workload>(kAdmitted);
    ASSERT_TRUE(workload);
    Condition finished;
    finished.type = "Finished";
    finished.status = ConditionStatus::kTrue;
    finished.reason = "Succeeded";
    const auto body = condition_body(*workload, finished).value();
    EXPECT_EQ(body.at("status").size(), 1U);
    EXPECT_EQ(body.at("status").at("conditions").size(), 1U);
    EXPECT_FALSE(body.at("metadata").has_field("resourceVersion"));
    EXPECT_EQ(manager_of_condition("Finished"), "kueue-job-controller-Finished");
}

TEST(Workload, ManifestHasOnePodSet) {
    WorkloadManifest manifest;
    manifest.meta.name = "trainingjob-a";
    manifest.queue_name = "q";
    manifest.pod_count = 3;
    manifest.pod_template = Json::parse(R"({"spec":{}})").value();
    manifest.priority = {"high", "kueue.x-k8s.io/workloadpriorityclass", 1000};
    const auto spec = to_json(manifest).value().at("spec");
    ASSERT_EQ(spec.at("podSets").size(), 1U);
    EXPECT_EQ(spec.at("podSets").at(0).at("name").as_string(), "main");
    EXPECT_EQ(spec.at("podSets").at(0).at("count").as_integer(), 3);
    EXPECT_EQ(spec.at("priority").as_integer(), 1000);
    EXPECT_EQ(spec.at("priorityClassName").as_string(), "high");
    EXPECT_FALSE(spec.has_field("maximumExecutionTimeSeconds"));
    manifest.priority = {};
    const auto plain = to_json(manifest).value().at("spec");
    EXPECT_EQ(plain.at("priority").as_integer(), 0);
    EXPECT_FALSE(plain.has_field("priorityClassName"));
}

TEST(ResourceFlavor, ReadsLabelsAndTolerations) {
    const Result<ResourceFlavor> flavor =
        parse_document<ResourceFlavor>(R"({"metadata": {"name": "a100"},
        "spec": {"nodeLabels": {"gpu": "a100"}, "tolerations": [{"key": "gpu"}]}})");
    ASSERT_TRUE(flavor);
    EXPECT_EQ(flavor->name, "a100");
    EXPECT_EQ(flavor->node_labels.at("gpu"), "a100");
    EXPECT_EQ(flavor->tolerations.size(), 1U);
}

}  // namespace
}  // namespace stoker::control
