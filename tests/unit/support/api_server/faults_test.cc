#include <gtest/gtest.h>

#include "common/http/http_client.h"
#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/server.h"

// Each fault has its documented effect, because other tests rely on it.
namespace stoker::test {
namespace {

namespace kinds = control::kinds;
using http::HttpResponse;

class ApiServerFaults : public ::testing::Test {
protected:
    ApiServerFaults() {
        auto made = http::make_curl_client({}, clock);
        EXPECT_TRUE(made);
        client = *std::move(made);
        server.create(kinds::kConfigMaps, "d", R"({"metadata":{"name":"a"}})");
    }

    Result<HttpResponse> get(const std::string& target = "/api/v1/namespaces/d/configmaps/a") {
        http::HttpRequest request;
        request.url = server.url() + target;
        return client->call(std::move(request));
    }

    Result<HttpResponse> post(const std::string& name) {
        http::HttpRequest request;
        request.method = "POST";
        request.url = server.url() + "/api/v1/namespaces/d/configmaps";
        request.headers = {{"Content-Type", "application/json"}};
        request.body = R"({"kind":"ConfigMap","metadata":{"name":")" + name + "\"}}";
        return client->call(std::move(request));
    }

    bool exists(const std::string& name) {
        return server.with_model([&](ApiServerModel& model) {
            return model.find(kinds::kConfigMaps, {"d", name}).has_value();
        });
    }

    SystemClock clock;
    ApiServer server;
    std::unique_ptr<http::HttpClient> client;
};

TEST_F(ApiServerFaults, AffectMatchingRequestsExactlyAsOftenAsAsked) {
    Fault fault;
    fault.method = "GET";
    fault.target_contains = "configmaps/a";
    fault.status = 503;
    fault.retry_after = "7";
    fault.skip = 1;
    fault.times = 2;
    server.add_fault(fault);
    std::vector<int> statuses;
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(get("/api/v1/configmaps")->status, 200);
        statuses.push_back(get()->status);
    }
    EXPECT_EQ(statuses, (std::vector<int>{200, 503, 503, 200}));
    EXPECT_EQ(server.count("GET", "configmaps/a"), 4U);
}

TEST_F(ApiServerFaults, ARequestIsExecutedIfItsAnswerIsLostButNotIfTheServerHangsUp) {
    Fault hang_up;
    hang_up.method = "POST";
    hang_up.hang_up = true;
    server.add_fault(hang_up);
    EXPECT_FALSE(post("x"));
    EXPECT_FALSE(exists("x"));
    Fault lose;
    lose.method = "POST";
    lose.lose_answer = true;
    server.add_fault(lose);
    EXPECT_FALSE(post("y"));
    EXPECT_TRUE(exists("y"));
}

TEST_F(ApiServerFaults, CutTheAnswerAfterSomeBytes) {
    const auto whole = get();
    ASSERT_TRUE(whole);
    Fault cut;
    cut.cut_after = 120;
    server.add_fault(cut);
    EXPECT_EQ(get().error().code, ErrorCode::kUnavailable);
    Fault beyond;
    beyond.cut_after = 100'000;
    beyond.split_seed = 7;
    server.add_fault(beyond);
    const auto again = get();
    ASSERT_TRUE(again) << "nothing is cut that is shorter";
    EXPECT_EQ(again->body, whole->body);
}

TEST_F(ApiServerFaults, DownLastsUntilUp) {
    server.set_down(true);
    EXPECT_FALSE(get());
    server.set_down(false);
    EXPECT_TRUE(get());
}

TEST_F(ApiServerFaults, RefusesRequestsWithoutTheRequiredToken) {
    server.require_token("secret");
    EXPECT_EQ(get()->status, 401);
}

TEST_F(ApiServerFaults, AWatchSendsPresetLines) {
    Fault fault;
    fault.first_lines = {"first\n"};
    fault.rewrite = [](std::vector<std::string>& lines) {
        for (std::string& line : lines) {
            line = "rewritten\n";
        }
    };
    server.add_fault(fault);
    const auto answer = get("/api/v1/configmaps?watch=1&timeoutSeconds=1");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "first\nrewritten\n");
}

}  // namespace
}  // namespace stoker::test
