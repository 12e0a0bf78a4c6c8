#include "operator/api/foreign_pod.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

std::optional<std::int64_t> pods(const std::string& text) {
    return pods_of_workload(Json::parse(text).value());
}

TEST(PodsOfWorkload, CountsThePodsOfEveryKind) {
    const std::vector<std::pair<std::string, std::int64_t>> cases = {
        {R"({"kind":"Job","spec":{"parallelism":4,"completions":4}})", 4},
        {R"({"kind":"Job","spec":{"parallelism":8,"completions":2}})", 2},
        {R"({"kind":"Job","spec":{}})", 1},
        {R"({"kind":"Deployment","spec":{"replicas":3}})", 3},
        {R"({"kind":"ReplicaSet","spec":{"replicas":3}})", 3},
        {R"({"kind":"JobSet","spec":{"replicatedJobs":[
            {"replicas":2,"template":{"spec":{"parallelism":4}}},{"template":{"spec":{}}}]}})",
         9},
        {R"({"kind":"PyTorchJob","spec":{"pytorchReplicaSpecs":{
            "Master":{"replicas":1},"Worker":{"replicas":7}}}})",
         8},
        {R"({"kind":"TrainJob","spec":{"trainer":{"numNodes":16}}})", 16},
        {R"({"kind":"RayCluster","spec":{"workerGroupSpecs":[{"replicas":3},{}]}})", 5},
        {R"({"kind":"RayJob","spec":{"rayClusterSpec":{"workerGroupSpecs":[{"replicas":3}]}}})",
         4}};
    for (const auto& [text, count] : cases) {
        EXPECT_EQ(pods(text), count) << text;
    }
    EXPECT_EQ(pods(R"({"kind":"Strange","spec":{"replicas":3}})"), std::nullopt);
}

TEST(EndOfWorkload, ReadsTheConditionOfEveryKind) {
    const auto end = [](const std::string& status) {
        return end_of_workload(Json::parse(R"({"status":)" + status + "}").value());
    };
    for (const std::string type : {"Complete", "Completed", "Succeeded"}) {
        const auto found = end(
            R"({"conditions":[{"type":")" + type +
            R"(","status":"True","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"}]})");
        ASSERT_TRUE(found) << type;
        EXPECT_TRUE(found->succeeded);
        EXPECT_EQ(found->message, "m");
        EXPECT_TRUE(found->at);
    }
    EXPECT_FALSE(end(R"({"conditions":[{"type":"Failed","status":"True"}]})")->succeeded);
    EXPECT_TRUE(end(R"({"jobStatus":"SUCCEEDED"})")->succeeded);
    EXPECT_FALSE(end(R"({"jobStatus":"FAILED"})")->succeeded);
    EXPECT_FALSE(end(R"({"conditions":[{"type":"Complete","status":"False"}]})"));
    EXPECT_FALSE(
        end(R"({"jobStatus":"RUNNING","conditions":[{"type":"Running","status":"True"}]})"));
}

TEST(ParseList, TakesListsOfObjectsOnly) {
    EXPECT_EQ(parse_list(R"([{"a":1},{"b":2}])")->size(), 2U);
    EXPECT_TRUE(parse_list("[]")->empty());
    for (const std::string text : {"", "{}", "[1]", "[", "null"}) {
        EXPECT_TRUE(!parse_list(text) || parse_list(text)->empty()) << text;
    }
}

}  // namespace
}  // namespace stoker::control
