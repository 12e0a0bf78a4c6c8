// The verbs of the API server that change objects.
#include "operator/kube/status_error.h"
#include "tests/integration/kube_contract_fixture.h"

namespace stoker::control {
namespace {

TEST_P(ApiContract, CreatesOnceAndReadsBack) {
    const Object made = make_map("a", R"({"k":"v"})");
    EXPECT_EQ(made.key, (ObjectKey{ns, "a"}));
    EXPECT_FALSE(made.uid.empty());
    EXPECT_FALSE(made.resource_version.empty());
    EXPECT_EQ(
        client->create(kinds::kConfigMaps, ns, config_map("a", "{}")).error().code,
        ErrorCode::kAlreadyExists);
    EXPECT_EQ(data_of("a"), R"({"k":"v"})");
    EXPECT_EQ(client->get(kinds::kConfigMaps, {ns, "none"}).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(
        client->create(kinds::kConfigMaps, ns, config_map("Not_A_Name", "{}")).error().code,
        ErrorCode::kInvalidArgument);
}

TEST_P(ApiContract, ReplaceNeedsTheCurrentVersion) {
    const Object first = make_map("a", R"({"n":"1"})");
    auto body = first.raw.value();
    body["data"]["n"] = web::json::value("2");
    const auto second = client->replace(kinds::kConfigMaps, first.key, Json(body));
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_NE(second->resource_version, first.resource_version);
    EXPECT_EQ(second->uid, first.uid);
    EXPECT_EQ(
        client->replace(kinds::kConfigMaps, first.key, Json(body)).error().code,
        ErrorCode::kConflict);
    const auto same = client->replace(kinds::kConfigMaps, first.key, second->raw);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->resource_version, second->resource_version) << "nothing changed";
}

TEST_P(ApiContract, SupportsMergeAndJsonPatchWithTests) {
    make_map("a", R"({"x":"1","y":"2"})");
    const ObjectKey key{ns, "a"};
    ASSERT_TRUE(client->patch(
        kinds::kConfigMaps, key, json(R"({"data":{"x":null,"z":"3"}})"), PatchType::kMerge));
    EXPECT_EQ(data_of("a"), R"({"y":"2","z":"3"})");
    const auto wrong = client->patch(
        kinds::kConfigMaps,
        key,
        json(R"([{"op":"test","path":"/data/y","value":"no"},{"op":"remove","path":"/data/y"}])"),
        PatchType::kJson);
    EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
    ASSERT_TRUE(client->patch(
        kinds::kConfigMaps,
        key,
        json(R"([{"op":"test","path":"/data/y","value":"2"},{"op":"remove","path":"/data/y"}])"),
        PatchType::kJson));
    EXPECT_EQ(data_of("a"), R"({"z":"3"})");
    EXPECT_EQ(
        client
            ->patch(
                kinds::kConfigMaps,
                key,
                json(R"({"metadata":{"resourceVersion":"1"},"data":{"z":"4"}})"),
                PatchType::kMerge)
            .error()
            .code,
        ErrorCode::kConflict);
}

TEST_P(ApiContract, ApplyOwnsNamedFieldsAndReleasesOmittedOnes) {
    const ObjectKey key{ns, "a"};
    const auto made =
        client->apply(kinds::kConfigMaps, key, config_map("a", R"({"x":"1","y":"2"})"));
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(other->apply(kinds::kConfigMaps, key, config_map("a", R"({"theirs":"t"})")));
    ASSERT_TRUE(client->apply(kinds::kConfigMaps, key, config_map("a", R"({"x":"3"})")));
    EXPECT_EQ(data_of("a"), R"({"theirs":"t","x":"3"})");
    const auto again = client->apply(kinds::kConfigMaps, key, config_map("a", R"({"x":"3"})"));
    const auto now = client->get(kinds::kConfigMaps, key);
    ASSERT_TRUE(again && now);
    EXPECT_EQ(again->resource_version, now->resource_version) << "applied is a fixpoint";
}

TEST_P(ApiContract, ApplyConflictsWithoutForce) {
    const ObjectKey key{ns, "a"};
    ASSERT_TRUE(other->apply(kinds::kConfigMaps, key, config_map("a", R"({"x":"theirs"})")));
    ApplyParams polite{"contract"};
    polite.force = false;
    const auto refused =
        call(apply_request(kinds::kConfigMaps, key, config_map("a", R"({"x":"ours"})"), polite));
    EXPECT_EQ(refused.status, 409);
    EXPECT_TRUE(read_failure(refused.status, refused.body).has_cause("FieldManagerConflict"));
    ASSERT_TRUE(client->apply(kinds::kConfigMaps, key, config_map("a", R"({"x":"ours"})")));
    ASSERT_TRUE(other->apply(kinds::kConfigMaps, key, config_map("a", R"({"y":"1"})")));
    EXPECT_EQ(data_of("a"), R"({"x":"ours","y":"1"})") << "they lost x when we took it";
}

TEST_P(ApiContract, ApplyWithUidDoesNotRecreate) {
    const Object made = make_map("a");
    ASSERT_TRUE(client->remove(kinds::kConfigMaps, made.key, {}));
    const auto applied = client->apply(
        kinds::kConfigMaps,
        made.key,
        config_map("a", R"({"x":"1"})", fmt::format(R"(,"uid":"{}")", made.uid)));
    EXPECT_EQ(applied.error().code, ErrorCode::kConflict);
    EXPECT_FALSE(client->get(kinds::kConfigMaps, made.key));
}

TEST_P(ApiContract, StatusAndSpecWritesAreSeparate) {
    const ObjectKey key{"", node};
    const auto body = [&](const std::string& rest) {
        return json(fmt::format(
            R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}},{}}})", node, rest));
    };
    ASSERT_TRUE(client->create(kinds::kNodes, "", body(R"("spec":{"unschedulable":true})")));
    ASSERT_TRUE(client->replace(
        kinds::kNodes, key, body(R"("spec":{"unschedulable":true},"status":{"phase":"Ignored"})")));
    const auto condition = [](const std::string& type, const std::string& status) {
        return fmt::format(
            R"({{"type":"{}","status":"{}","lastHeartbeatTime":null,"lastTransitionTime":null}})",
            type,
            status);
    };
    const auto one = client->apply_status(
        kinds::kNodes,
        key,
        body(
            R"("spec":{"unschedulable":false},"status":{"conditions":[)" +
            condition("Mine", "True") + "]}"));
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_EQ(string_at(one->raw.value(), {"status", "phase"}), "");
    EXPECT_NE(one->raw.text().find(R"("unschedulable":true)"), std::string::npos);
    const auto two = other->apply_status(
        kinds::kNodes,
        key,
        body(R"("status":{"conditions":[)" + condition("Theirs", "False") + "]}"));
    ASSERT_TRUE(two) << two.error().message;
    EXPECT_EQ(find_at(two->raw.value(), {"status", "conditions"})->size(), 2U);
    EXPECT_EQ(
        client
            ->apply_status(
                kinds::kNodes,
                {"", node + "-none"},
                json(fmt::format(
                    R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}-none"}},"status":{{}}}})",
                    node)))
            .error()
            .code,
        ErrorCode::kNotFound)
        << "a status never creates";
}

TEST_P(ApiContract, DeleteChecksPreconditionsAndIgnoresMissingObjects) {
    const Object made = make_map("a");
    DeleteParams wrong;
    wrong.uid = "00000000-0000-0000-0000-000000000000";
    EXPECT_EQ(
        client->remove(kinds::kConfigMaps, made.key, wrong).error().code, ErrorCode::kConflict);
    DeleteParams right;
    right.uid = made.uid;
    right.resource_version = made.resource_version;
    EXPECT_TRUE(client->remove(kinds::kConfigMaps, made.key, right));
    EXPECT_TRUE(client->remove(kinds::kConfigMaps, made.key, {}));
}

TEST_P(ApiContract, FinalizersDelayDeletion) {
    const Object made = make_map("a", "{}", R"(,"finalizers":["stoker.dev/test"])");
    ASSERT_TRUE(client->remove(kinds::kConfigMaps, made.key, {}));
    const auto held = client->get(kinds::kConfigMaps, made.key);
    ASSERT_TRUE(held);
    EXPECT_NE(string_at(held->raw.value(), {"metadata", "deletionTimestamp"}), "");
    ASSERT_TRUE(client->patch(
        kinds::kConfigMaps,
        made.key,
        json(R"([{"op":"test","path":"/metadata/finalizers/0","value":"stoker.dev/test"},
                 {"op":"remove","path":"/metadata/finalizers/0"}])"),
        PatchType::kJson));
    EXPECT_EQ(client->get(kinds::kConfigMaps, made.key).error().code, ErrorCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(
    Server, ApiContract, ::testing::ValuesIn(servers()), [](const auto& server) {
        return server.param;
    });

}  // namespace
}  // namespace stoker::control
