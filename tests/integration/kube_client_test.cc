// RestClient and RestTransport against servers that refuse, break and lose data.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"
#include "operator/runtime/reconciler.h"
#include "tests/support/api_server/server.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ApiServer;
using test::ApiServerModel;
using test::eventually;
using test::Fault;

Json map_named(const std::string& name, const std::string& owner = "") {
    return Json::
        parse(fmt::format(
                  R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","labels":{{"owner":"{}"}}}}}})",
                  name,
                  owner))
            .value();
}

class KubeClient : public ::testing::Test {
protected:
    void connect(AccessConfig config = {}, AccessSource::ReadFile reader = read_file) {
        config.server = server.url();
        access = std::make_unique<AccessSource>(std::move(config), std::move(reader), clock);
        transport = std::make_unique<RestTransport>(
            *access, RestTransportOptions{"stoker-test/1 (linux/amd64) unit", mib(64), 8}, clock);
        RestClientOptions options;
        options.field_manager = "stoker-operator";
        options.retry.pause = milliseconds{5};
        client = std::make_unique<RestClient>(
            *transport, options, clock, stop.get_token(), [this] { return leads.load(); });
    }

    static Fault on(const std::string& method) {
        Fault fault;
        fault.method = method;
        return fault;
    }

    ApiServer server;
    SystemClock clock;
    std::stop_source stop;
    std::atomic<bool> leads{true};
    std::unique_ptr<AccessSource> access;
    std::unique_ptr<RestTransport> transport;
    std::unique_ptr<RestClient> client;
};

TEST_F(KubeClient, SendsUserAgentFieldManagerAndContentType) {
    connect();
    ASSERT_TRUE(client->apply(kinds::kConfigMaps, {"demo", "a"}, map_named("a")));
    const auto seen = server.seen().at(0);
    EXPECT_EQ(seen.user_agent, "stoker-test/1 (linux/amd64) unit");
    EXPECT_NE(seen.target.find("fieldManager=stoker-operator&force=true"), std::string::npos);
    EXPECT_EQ(seen.content_type, "application/apply-patch+yaml");
}

TEST_F(KubeClient, RetriesPostAfterRetryAfter) {
    connect();
    Fault fault = on("POST");
    fault.status = 429;
    fault.retry_after = "0";
    fault.times = 3;
    server.add_fault(fault);
    EXPECT_TRUE(client->create(kinds::kConfigMaps, "demo", map_named("a")));
    EXPECT_EQ(server.count("POST", ""), 4U);
}

TEST_F(KubeClient, GivesUpAfterTenTries) {
    connect();
    Fault fault = on("");
    fault.status = 503;
    fault.retry_after = "0";
    fault.times = 20;
    server.add_fault(fault);
    EXPECT_EQ(client->get(kinds::kConfigMaps, {"demo", "a"}).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(server.count("GET", ""), 10U);
}

TEST_F(KubeClient, RetriesReadsButNotWritesAfterConnectionLoss) {
    connect();
    ASSERT_TRUE(client->create(kinds::kConfigMaps, "demo", map_named("a")));
    Fault reset = on("GET");
    reset.lose_answer = true;
    reset.reset = true;
    reset.times = 3;
    server.add_fault(reset);
    EXPECT_TRUE(client->get(kinds::kConfigMaps, {"demo", "a"}));
    Fault lost = on("PATCH");
    lost.lose_answer = true;
    server.add_fault(lost);
    const auto patched = client->patch(
        kinds::kConfigMaps,
        {"demo", "a"},
        Json::parse(R"({"data":{"x":"1"}})").value(),
        PatchType::kMerge);
    EXPECT_EQ(patched.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(server.count("PATCH", ""), 1U);
}

TEST_F(KubeClient, AnOperatorThatDoesNotLeadReadsButDoesNotWrite) {
    connect();
    leads = false;
    EXPECT_EQ(
        client->create(kinds::kConfigMaps, "demo", map_named("a")).error().code,
        ErrorCode::kCancelled);
    EXPECT_EQ(
        client->remove(kinds::kConfigMaps, {"demo", "a"}, {}).error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(client->list(kinds::kConfigMaps, {}));
    EXPECT_EQ(client->review_token("x", {"stoker.dev"}).error().code, ErrorCode::kForbidden);
    EXPECT_EQ(server.count("POST", "configmaps"), 0U);
}

TEST_F(KubeClient, StopEndsWaitsAndCalls) {
    connect();
    Fault fault = on("GET");
    fault.status = 429;
    fault.retry_after = "3600";
    server.add_fault(fault);
    std::jthread stopper([&] {
        eventually([&] { return server.count("GET", "") == 1; });
        stop.request_stop();
    });
    EXPECT_EQ(client->get(kinds::kConfigMaps, {"demo", "a"}).error().code, ErrorCode::kCancelled);
}

TEST_F(KubeClient, RejectsInvalidNamesWithoutARequest) {
    connect();
    EXPECT_EQ(
        client->get(kinds::kConfigMaps, {"demo", "../secrets/x"}).error().code,
        ErrorCode::kInvalidArgument);
    EXPECT_EQ(
        client->remove(kinds::kPods, {"demo", ""}, {}).error().code, ErrorCode::kInvalidArgument);
    const ObjectKey outside{"demo", "../x"};
    const Json body = map_named("../x");
    for (const auto& written :
         {client->create(kinds::kConfigMaps, "demo", body),
          client->replace(kinds::kConfigMaps, outside, body),
          client->apply(kinds::kConfigMaps, outside, body),
          client->apply_status(kinds::kConfigMaps, outside, body),
          client->patch(kinds::kConfigMaps, outside, body, PatchType::kMerge)}) {
        EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_TRUE(server.seen().empty());
}

TEST_F(KubeClient, ReviewsTokenOwnerAndAudience) {
    connect();
    server.with_model([](ApiServerModel& model) {
        const auto user = Json::parse(
            R"({"username":"system:serviceaccount:demo:trainer","uid":"u1","groups":["g"],
                "extra":{"authentication.kubernetes.io/pod-name":["trainer-0"],
                         "authentication.kubernetes.io/pod-uid":["p1"]}})");
        model.add_token("good", *user, {"stoker.dev", "other"});
    });
    const auto owner = client->review_token("good", {"stoker.dev"});
    ASSERT_TRUE(owner) << owner.error().message;
    EXPECT_EQ(owner->username, "system:serviceaccount:demo:trainer");
    EXPECT_EQ(owner->pod_name, "trainer-0");
    EXPECT_EQ(owner->pod_uid, "p1");
    EXPECT_EQ(owner->groups, std::vector<std::string>{"g"});
    EXPECT_EQ(client->review_token("good", {"another"}).error().code, ErrorCode::kForbidden);
    EXPECT_EQ(client->review_token("bad", {"stoker.dev"}).error().code, ErrorCode::kForbidden);
}

TEST_F(KubeClient, RejectsTokenReviewWithoutAudiences) {
    connect();
    Fault fault = on("POST");
    fault.status = 201;
    fault.body =
        R"({"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"x"}}})";
    server.add_fault(fault);
    EXPECT_EQ(client->review_token("t", {"stoker.dev"}).error().code, ErrorCode::kForbidden);
}

// The kubelet rotates the token by renaming a link; the server refuses the old one at once.
TEST_F(KubeClient, RotatedTokenCausesAtMostOneRefusal) {
    const auto folder = std::filesystem::temp_directory_path() /
                        fmt::format("stoker-token-{}", clock.now().time_since_epoch().count());
    std::filesystem::create_directories(folder / "one");
    std::filesystem::create_directories(folder / "two");
    std::ofstream(folder / "one" / "token") << "first\n";
    std::ofstream(folder / "two" / "token") << "second\n";
    std::filesystem::create_symlink("one", folder / "..data");
    std::filesystem::create_symlink("..data/token", folder / "token");
    AccessConfig config;
    config.token_file = folder / "token";
    connect(config);
    server.require_token("first");
    EXPECT_TRUE(client->list(kinds::kConfigMaps, {}));
    std::filesystem::create_symlink("two", folder / "..data_tmp");
    std::filesystem::rename(folder / "..data_tmp", folder / "..data");
    server.require_token("second");
    EXPECT_TRUE(client->list(kinds::kConfigMaps, {}));
    EXPECT_EQ(server.count("GET", ""), 3U) << "one refusal";
    server.require_token("third");
    EXPECT_EQ(client->list(kinds::kConfigMaps, {}).error().code, ErrorCode::kForbidden);
    EXPECT_EQ(server.count("GET", ""), 4U) << "the same token is not sent twice";
    std::filesystem::remove_all(folder);
}

// New requests use the new CA, and the running watch continues. Plain HTTP is enough here: the test
// counts live connections.
TEST_F(KubeClient, NewCaKeepsStreamsOpen) {
    testing::ManualClock file_clock;
    std::mutex mutex;
    std::map<std::string, std::string> files = {{"/ca", "ca1"}};
    const auto write = [&](const std::string& path, const std::string& text) {
        const std::lock_guard lock(mutex);
        files[path] = text;
        file_clock.advance(std::chrono::minutes{6});
    };
    AccessConfig config;
    config.server = server.url();
    config.ca_file = "/ca";
    AccessSource source(
        config,
        [&](const std::string& path) -> Result<std::string> {
            const std::lock_guard lock(mutex);
            return files[path];
        },
        file_clock);
    RestTransport rotating(source, {"t", mib(1), 8}, clock);
    const auto read = [&] {
        return rotating.call(list_request(kinds::kConfigMaps, {}), seconds{30}, {}).has_value();
    };
    std::atomic<bool> ended{false};
    std::jthread watcher([&] {
        ApiStreamSink sink{[] {}, [](std::string_view) { return true; }};
        WatchParams params;
        params.timeout_seconds = 300;
        const auto end = rotating.stream(
            watch_request(kinds::kConfigMaps, params), seconds{300}, sink, stop.get_token());
        EXPECT_EQ(end.error().code, ErrorCode::kCancelled);
        ended = true;
    });
    ASSERT_TRUE(eventually([&] { return server.open_watches() == 1; }));
    write("/ca", "ca2");
    EXPECT_TRUE(read());
    write("/ca", "");
    EXPECT_TRUE(read());
    EXPECT_FALSE(ended);
    EXPECT_EQ(server.open_watches(), 1);
    stop.request_stop();
    EXPECT_TRUE(eventually([&] { return server.open_watches() == 0 && ended; }));
}

TEST_F(KubeClient, NonJsonResponseErrorNamesTheOperation) {
    connect();
    Fault fault = on("GET");
    fault.status = 200;
    fault.body = "<html>";
    server.add_fault(fault);
    const auto got = client->get(kinds::kConfigMaps, {"demo", "a"});
    EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(got.error().message.find("getting configmaps demo/a"), 0U) << got.error().message;
}

TEST_F(KubeClient, LimitsEndlessResponses) {
    connect();
    RestTransport small(*access, {"t", kib(10), 8}, clock);
    Fault fault = on("GET");
    fault.status = 200;
    fault.body = std::string(20'000, 'x');
    server.add_fault(fault);
    const auto got = small.call(get_request(kinds::kConfigMaps, {"demo", "a"}), seconds{30}, {});
    EXPECT_EQ(got.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace stoker::control
