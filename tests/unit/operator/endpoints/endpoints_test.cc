#include "operator/endpoints/endpoints.h"

#include <atomic>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/check.h"
#include "common/http/http_client.h"
#include "tests/support/certificates.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct EndpointsTest : ::testing::Test {
    EndpointsTest() {
        EndpointSources sources;
        sources.metrics = [] { return "jobs 1\n"; };
        sources.healthy = [this]() -> Status {
            return healthy ? Status{} : fail(ErrorCode::kUnavailable, "lease not renewed");
        };
        sources.ready = [] { return Status{}; };
        sources.debug_pages["/debug/secret"] = [] {
            return http::ServerResponse{200, "application/json", "{}"};
        };
        sources.identify = [this](const std::string& token) -> Result<TokenOwner> {
            ++identified;
            if (token == "nobody.knows.this") {
                return fail(ErrorCode::kForbidden, "not valid");
            }
            if (token == "server.is.away") {
                return fail(ErrorCode::kUnavailable, "no answer");
            }
            if (token == "slow.to.check") {
                std::this_thread::sleep_for(std::chrono::milliseconds{300});
                slow_one_checked = true;
            }
            TokenOwner owner;
            owner.username = token;
            return owner;
        };
        sources.authorize = [](const TokenOwner& owner, const std::string& path) -> Status {
            return owner.username == "may.read.it" && path.starts_with("/debug/")
                       ? Status{}
                       : fail(ErrorCode::kForbidden, "no");
        };
        endpoints.emplace(
            EndpointSettings{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}, sources, clock);
        STOKER_CHECK(endpoints->start().has_value(), "starting");
    }

    void open_debug() {
        const testing::TestCertificates made = testing::make_certificates();
        endpoints->use_certificate({{made.certificate, made.key}, made.ca});
        ca = made.ca;
    }

    http::HttpResponse get(
        const std::string& base, const std::string& path, http::Headers headers = {}) {
        http::ClientOptions options;
        options.ca_pem = ca;
        const auto client = http::make_curl_client(std::move(options), real).value();
        http::HttpRequest request;
        request.url = base + path;
        request.headers = std::move(headers);
        auto response = client->call(std::move(request));
        return response ? *std::move(response) : http::HttpResponse{};
    }

    http::HttpResponse debug(const std::string& path, http::Headers headers = {}) {
        return get(
            fmt::format("https://127.0.0.1:{}", endpoints->debug_port()), path, std::move(headers));
    }

    int with_token(const std::string& token) {
        return debug("/debug/secret", {{"X-Stoker-Token", token}}).status;
    }

    testing::ManualClock clock;
    SystemClock real;
    std::string ca;
    std::atomic<int> identified{0};
    std::atomic<bool> healthy{true};
    std::atomic<bool> slow_one_checked{false};
    std::optional<Endpoints> endpoints;
};

TEST_F(EndpointsTest, EachPortServesOnlyItsOwnPaths) {
    const std::string probes = fmt::format("http://127.0.0.1:{}", endpoints->probes_port());
    const std::string metrics = fmt::format("http://127.0.0.1:{}", endpoints->metrics_port());
    EXPECT_EQ(get(probes, "/healthz").status, 200);
    EXPECT_EQ(get(probes, "/readyz").status, 200);
    EXPECT_EQ(get(metrics, "/metrics").body, "jobs 1\n");
    for (const char* elsewhere : {"/metrics", "/debug/secret"}) {
        EXPECT_EQ(get(probes, elsewhere).status, 404) << elsewhere;
    }
    for (const char* elsewhere : {"/healthz", "/debug/secret"}) {
        EXPECT_EQ(get(metrics, elsewhere).status, 404) << elsewhere;
    }
    healthy = false;
    EXPECT_EQ(get(probes, "/healthz").status, 500);
    EXPECT_THAT(get(probes, "/healthz").body, HasSubstr("lease not renewed"));
}

TEST_F(EndpointsTest, DebugPageNeedsAValidTokenAndTheRight) {
    open_debug();
    EXPECT_EQ(debug("/debug/secret").status, 401);
    EXPECT_NE(http::find_header(debug("/debug/secret").headers, "WWW-Authenticate"), nullptr);
    EXPECT_EQ(with_token("garbage"), 401);
    EXPECT_EQ(with_token("nobody.knows.this"), 401);
    EXPECT_EQ(with_token("may.not.read"), 403);
    EXPECT_EQ(with_token("server.is.away"), 503);
    EXPECT_EQ(with_token("may.read.it"), 200);
    EXPECT_EQ(debug("/debug/secret", {{"Authorization", "Bearer may.read.it"}}).status, 200);
    EXPECT_EQ(debug("/debug/other", {{"X-Stoker-Token", "may.read.it"}}).status, 404);
    EXPECT_EQ(debug("/metrics", {{"X-Stoker-Token", "may.read.it"}}).status, 403);
}

TEST_F(EndpointsTest, SkipsReviewOfGarbageAndCachesAnswers) {
    open_debug();
    with_token("garbage");
    EXPECT_EQ(identified, 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(with_token("may.read.it"), 200);
    }
    EXPECT_EQ(identified, 1);
    clock.advance(seconds{11});
    EXPECT_EQ(with_token("may.read.it"), 200);
    EXPECT_EQ(identified, 2);
}

TEST_F(EndpointsTest, NewCertificateServesTheNextConnection) {
    open_debug();
    const std::uint16_t port = endpoints->debug_port();
    EXPECT_EQ(with_token("may.read.it"), 200);
    open_debug();
    EXPECT_EQ(endpoints->debug_port(), port);
    EXPECT_EQ(with_token("may.read.it"), 200);
}

TEST_F(EndpointsTest, StopsWhileATokenIsBeingChecked) {
    open_debug();
    std::jthread caller([&] { with_token("slow.to.check"); });
    ASSERT_TRUE(test::eventually([&] { return identified == 1; }));
    endpoints->stop();
    EXPECT_TRUE(slow_one_checked);
}

}  // namespace
}  // namespace stoker::control
