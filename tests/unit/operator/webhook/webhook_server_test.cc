#include "operator/webhook/webhook_server.h"

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/http/http_client.h"
#include "operator/webhook/webhook_trust.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_api_client.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

struct WebhookServerTest : ::testing::Test {
    void open() {
        const testing::TestCertificates made = testing::make_certificates();
        server.use_certificate({{made.certificate, made.key}, made.ca});
        ca = made.ca;
    }

    int post(
        const std::string& path,
        const std::string& body,
        const std::string& type = "application/json") const {
        http::ClientOptions options;
        options.ca_pem = ca;
        const auto client = http::make_curl_client(std::move(options), clock).value();
        http::HttpRequest request;
        request.method = "POST";
        request.url = fmt::format("https://127.0.0.1:{}{}", port, path);
        request.headers = {{"Content-Type", type}};
        request.body = body;
        auto response = client->call(std::move(request));
        return response ? response->status : 0;
    }

    SystemClock clock;
    std::string ca;
    std::uint16_t port = 0;
    WebhookServer server{"127.0.0.1:0", [](const std::string& body) -> Result<std::string> {
                             if (body == "bad") {
                                 return fail(ErrorCode::kInvalidArgument, "bad");
                             }
                             if (body == "early") {
                                 return fail(ErrorCode::kUnavailable, "not listed");
                             }
                             return "answer";
                         }};
};

TEST_F(WebhookServerTest, OpensWithTheFirstCertificateAndThenServesNewOnes) {
    EXPECT_EQ(server.port(), 0);
    open();
    port = server.port();
    EXPECT_EQ(post("/inject?timeout=5s", "review"), 200);
    const std::string old = ca;
    open();
    EXPECT_EQ(server.port(), port);
    EXPECT_EQ(post("/inject", "review"), 200);
    ca = old;
    EXPECT_EQ(post("/inject", "review"), 0) << "the old CA signs no more";
}

TEST_F(WebhookServerTest, AnswersMistakesWithAnError) {
    open();
    port = server.port();
    EXPECT_EQ(post("/inject", "bad"), 400);
    EXPECT_EQ(post("/inject", "early"), 503);
    EXPECT_EQ(post("/other", "review"), 404);
    EXPECT_EQ(post("/inject", "review", "text/plain"), 415);
    EXPECT_EQ(server.failures(), 2U);
}

TEST_F(WebhookServerTest, StaysClosedAfterStop) {
    server.stop();
    open();
    EXPECT_EQ(server.port(), 0);
}

TEST(WebhookTrust, AppliesTheBundleWhenItChangedAndEveryMinute) {
    test::FakeApiClient client;
    testing::ManualClock clock;
    WebhookTrust trust{client, "stoker-webhook", clock};
    ASSERT_TRUE(trust.publish("PEM"));
    ASSERT_TRUE(trust.publish("PEM"));
    ASSERT_EQ(client.count("apply"), 1U);
    EXPECT_EQ(client.calls[0].plural, "mutatingwebhookconfigurations");
    EXPECT_NE(client.calls[0].body.find(R"("caBundle":"UEVN")"), std::string::npos);
    EXPECT_EQ(client.calls[0].body.find("rules"), std::string::npos) << "the chart's";
    ASSERT_TRUE(trust.publish("NEXT"));
    EXPECT_EQ(client.count("apply"), 2U);
    clock.advance(std::chrono::minutes{1});
    ASSERT_TRUE(trust.publish("NEXT"));
    EXPECT_EQ(client.count("apply"), 3U);
}

TEST(WebhookTrust, RepeatsAFailedWrite) {
    test::FakeApiClient client;
    testing::ManualClock clock;
    WebhookTrust trust{client, "stoker-webhook", clock};
    client.failure = Error{ErrorCode::kForbidden, "no"};
    EXPECT_FALSE(trust.publish("PEM"));
    client.failure.reset();
    EXPECT_TRUE(trust.publish("PEM"));
    EXPECT_EQ(client.count("apply"), 2U);
}

}  // namespace
}  // namespace stoker::control
