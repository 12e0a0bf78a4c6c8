#include "tests/support/api_server/model.h"

#include <cpprest/json.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operator/kube/request.h"
#include "operator/kube/status_error.h"

// Features that the suite in tests/integration cannot test, because it also runs against a real
// server: test controls, and the garbage collector (a separate program in a real cluster).
namespace stoker::test {
namespace {

namespace kinds = control::kinds;

class ApiServerModelTest : public ::testing::Test {
protected:
    ModelAnswer send(const control::ApiRequest& request) {
        return model.handle(
            {std::string(to_string(request.verb)),
             request.target,
             request.content_type,
             request.body},
            WallTime{});
    }

    Json create(const ResourceKind& kind, const std::string& name, const std::string& meta = "") {
        const auto body = Json::parse(
            fmt::format(R"({{"kind":"{}","metadata":{{"name":"{}"{}}}}})", kind.kind, name, meta));
        const auto answer = send(create_request(kind, kind.namespaced ? "d" : "", *body));
        EXPECT_EQ(answer.status, 201) << answer.body;
        return Json::parse(answer.body).value();
    }

    static std::string uid_of(const Json& object) {
        return control::string_at(object.value(), {"metadata", "uid"});
    }

    static std::string owned_by(const Json& owner) {
        return fmt::format(
            R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"X","name":"x","uid":"{}"}}])",
            uid_of(owner));
    }

    WatchCursor watch(const ResourceKind& kind, const std::string& version) {
        control::WatchParams params;
        params.resource_version = version;
        auto answer = send(watch_request(kind, params));
        EXPECT_TRUE(answer.watch) << answer.body;
        return answer.watch.value_or(WatchCursor{});
    }

    ApiServerModel model;
};

TEST_F(ApiServerModelTest, CollectsObjectsWhoseOwnersAreAllGone) {
    const Json job = create(kinds::kJobs, "job");
    const Json other = create(kinds::kServices, "other");
    const Json pod = create(kinds::kPods, "pod", owned_by(job));
    create(kinds::kConfigMaps, "grandchild", owned_by(pod));
    create(kinds::kPods, "free");
    EXPECT_EQ(send(delete_request(kinds::kServices, {"d", "other"}, {})).status, 200);
    EXPECT_TRUE(model.find(kinds::kPods, {"d", "pod"}));
    send(delete_request(kinds::kJobs, {"d", "job"}, {}));
    EXPECT_FALSE(model.find(kinds::kPods, {"d", "pod"}));
    EXPECT_FALSE(model.find(kinds::kConfigMaps, {"d", "grandchild"}));
    EXPECT_TRUE(model.find(kinds::kPods, {"d", "free"}));
}

TEST_F(ApiServerModelTest, CollectsAnObjectWithAFinalizerOnlyOnceThatIsGone) {
    const Json job = create(kinds::kJobs, "job");
    create(kinds::kPods, "pod", owned_by(job) + R"(,"finalizers":["stoker.dev/test"])");
    send(delete_request(kinds::kJobs, {"d", "job"}, {}));
    const auto pod = model.find(kinds::kPods, {"d", "pod"});
    ASSERT_TRUE(pod);
    EXPECT_TRUE(pod->value().at("metadata").has_field("deletionTimestamp"));
    send(patch_request(
        kinds::kPods,
        {"d", "pod"},
        Json::parse(R"({"metadata":{"finalizers":null}})").value(),
        control::PatchType::kMerge));
    EXPECT_FALSE(model.find(kinds::kPods, {"d", "pod"}));
}

TEST_F(ApiServerModelTest, CollectsAChildCreatedAfterItsOwnersRemoval) {
    const Json job = create(kinds::kJobs, "job");
    send(delete_request(kinds::kJobs, {"d", "job"}, {}));
    create(kinds::kPods, "late", owned_by(job));
    EXPECT_FALSE(model.find(kinds::kPods, {"d", "late"}));
}

TEST_F(ApiServerModelTest, CountsGenerationsOfTheSpecOnly) {
    create(kinds::kTrainingJobs, "t");
    const auto generation = [&] {
        return control::integer_at(
            model.find(kinds::kTrainingJobs, {"d", "t"})->value(), {"metadata", "generation"});
    };
    const auto patch = [&](const char* text, const char* subresource) {
        EXPECT_EQ(
            send(patch_request(
                     kinds::kTrainingJobs,
                     {"d", "t"},
                     Json::parse(text).value(),
                     control::PatchType::kMerge,
                     subresource))
                .status,
            200);
    };
    patch(R"({"spec":{"nodes":1}})", "");
    const auto first = generation();
    patch(R"({"metadata":{"labels":{"a":"b"}}})", "");
    patch(R"({"status":{"attempt":1}})", "status");
    EXPECT_EQ(generation(), first);
    patch(R"({"spec":{"nodes":2}})", "");
    EXPECT_EQ(generation(), *first + 1);
}

TEST_F(ApiServerModelTest, LateWatchersGetVersionExpired) {
    model.set_event_capacity(kinds::kPods, 3);
    create(kinds::kPods, "p0");
    const std::string version = fmt::format("{}", model.version());
    for (int i = 1; i <= 3; ++i) {
        create(kinds::kPods, fmt::format("p{}", i));
    }
    auto in_time = watch(kinds::kPods, version);
    EXPECT_EQ(model.poll(in_time).lines.size(), 3U);
    create(kinds::kPods, "p4");
    EXPECT_EQ(model.poll(in_time).lines.size(), 1U);
    auto late = watch(kinds::kPods, version);
    const auto batch = model.poll(late);
    ASSERT_EQ(batch.lines.size(), 1U);
    EXPECT_TRUE(batch.ended);
    EXPECT_NE(batch.lines[0].find("\"ERROR\""), std::string::npos);
    EXPECT_NE(batch.lines[0].find("410"), std::string::npos);
}

TEST_F(ApiServerModelTest, LateListPagesGetVersionExpired) {
    for (int i = 0; i < 5; ++i) {
        create(kinds::kPods, fmt::format("p{}", i));
    }
    control::ListParams params;
    params.limit = 2;
    const Json page = Json::parse(send(list_request(kinds::kPods, params)).body).value();
    params.continue_token = control::string_at(page.value(), {"metadata", "continue"});
    EXPECT_EQ(send(list_request(kinds::kPods, params)).status, 200);
    model.compact(kinds::kPods);
    EXPECT_EQ(send(list_request(kinds::kPods, params)).status, 410);
}

TEST_F(ApiServerModelTest, AWatchWithoutAVersionStartsWithExistingObjects) {
    create(kinds::kPods, "p0");
    auto cursor = watch(kinds::kPods, "");
    EXPECT_EQ(model.poll(cursor).lines.size(), 1U);
    EXPECT_TRUE(model.poll(cursor).lines.empty());
    create(kinds::kPods, "p1");
    EXPECT_EQ(model.poll(cursor).lines.size(), 1U);
    EXPECT_NE(
        model.bookmark(cursor).find(fmt::format("\"{}\"", model.version())), std::string::npos);
}

TEST_F(ApiServerModelTest, RefusesTheSameRequestsAsARealServer) {
    create(kinds::kPods, "p");
    const auto body = Json::parse(R"({"kind":"Pod","metadata":{"name":"p","managedFields":[]}})");
    EXPECT_EQ(send(apply_request(kinds::kPods, {"d", "p"}, *body, {"m"})).status, 400);
    const auto plain = Json::parse(R"({"kind":"Pod","metadata":{"name":"p"}})");
    EXPECT_EQ(send(apply_request(kinds::kPods, {"d", "p"}, *plain, {""})).status, 400);
    EXPECT_EQ(send(apply_request(kinds::kPods, {"d", "q"}, *plain, {"m"})).status, 400);
    EXPECT_EQ(
        model.handle({"PATCH", "/api/v1/namespaces/d/pods/p", "text/plain", "{}"}, {}).status, 415);
    EXPECT_EQ(model.handle({"GET", "/apis/nope/v1/things", "", ""}, {}).status, 404);
    EXPECT_EQ(model.handle({"GET", "/version", "", ""}, {}).status, 200);
    EXPECT_EQ(model.handle({"GET", "/apis/batch", "", ""}, {}).status, 200);
}

}  // namespace
}  // namespace stoker::test
