#include "sidecar/origin/web_identity.h"

#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/http_server.h"
#include "tests/support/http_script_server.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using stoker::testing::ManualClock;
using ::testing::HasSubstr;
using ::testing::Not;

Environment environment(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) -> const char* {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

// A token service on loopback: answers each request with the next number as access key, valid for
// an hour of the test's clock; a `status` other than 200 refuses.
class WebIdentityTest : public ::testing::Test {
protected:
    WebIdentityTest() {
        write_token("jwt 1");
        server_ = http::HttpServer::start(
                      {.address = "127.0.0.1"},
                      [this](const http::ServerRequest& request) { return answer(request); })
                      .value();
        identity_ = {
            "arn:aws:iam::1:role/r&s",
            folder_.path() + "/token",
            "stoker",
            fmt::format("http://127.0.0.1:{}/", server_->port())};
    }

    std::unique_ptr<CredentialSource> source() {
        return credentials_from_web_identity(
            identity_, http::make_curl_client({}, real_clock_).value(), clock_);
    }

    void write_token(const std::string& text) { std::ofstream{folder_.path() + "/token"} << text; }

    std::vector<std::string> asked() {
        const std::lock_guard lock{mutex_};
        return asked_;
    }

    void refuse_with(int status) {
        const std::lock_guard lock{mutex_};
        status_ = status;
    }

    http::ServerResponse answer(const http::ServerRequest& request) {
        const std::lock_guard lock{mutex_};
        asked_.push_back(request.method + " " + request.body);
        if (status_ != 200) {
            return {
                status_,
                "text/xml",
                "<ErrorResponse><Error><Code>Why</Code><Message>words</Message></Error>"
                "</ErrorResponse>",
                {}};
        }
        const auto expires =
            std::chrono::floor<std::chrono::seconds>(clock_.wall_now() + lifetime());
        const std::time_t at = expires.time_since_epoch().count();
        std::tm date{};
        ::gmtime_r(&at, &date);
        std::string text(32, '\0');
        text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &date));
        return {
            200,
            "text/xml",
            fmt::format(
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                "<AccessKeyId>{}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
                "<SessionToken>t</SessionToken><Expiration>{}</Expiration></Credentials>"
                "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
                asked_.size(),
                text),
            {}};
    }

    // The first `count` answers are valid for `lifetime` only.
    void shorten_answers(std::size_t count, Duration lifetime) {
        const std::lock_guard lock{mutex_};
        short_answers_ = count;
        short_lifetime_ = lifetime;
    }

    [[nodiscard]] Duration lifetime() const {
        return asked_.size() <= short_answers_ ? short_lifetime_ : Duration{1h};
    }

    std::string key_of(CredentialSource& source) {
        const auto got = source.get();
        return got && *got ? (*got)->access_key_id : got.error().message;
    }

    test::TempFolder folder_;
    SystemClock real_clock_;
    ManualClock clock_;
    std::mutex mutex_;
    std::vector<std::string> asked_;
    int status_ = 200;
    std::size_t short_answers_ = 0;
    Duration short_lifetime_{};
    std::unique_ptr<http::HttpServer> server_;
    WebIdentity identity_;
};

TEST_F(WebIdentityTest, ExchangesTheTokenOnceAndKeepsTheCredentials) {
    const auto keys = source();
    EXPECT_EQ(keys->get().value(), (Credentials{"1", "s", "t"}));
    clock_.advance(54min);
    EXPECT_EQ(key_of(*keys), "1");
    EXPECT_EQ(
        asked(),
        std::vector<std::string>{
            "POST Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
            "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr%26s&RoleSessionName=stoker"
            "&WebIdentityToken=jwt%201"});
}

TEST_F(WebIdentityTest, CallsBackWhenTheServiceHasAnswered) {
    const auto keys = source();
    std::promise<void> first;
    std::promise<void> second;
    {
        const std::lock_guard no_answer_yet{mutex_};
        EXPECT_FALSE(keys->try_get([&] { first.set_value(); }).has_value());
        EXPECT_FALSE(keys->try_get([&] { second.set_value(); }).has_value());
    }
    first.get_future().wait();
    second.get_future().wait();
    const auto got = keys->try_get([] { ADD_FAILURE() << "it has an answer"; });
    ASSERT_TRUE(got && *got);
    EXPECT_EQ(**got, (Credentials{"1", "s", "t"}));
    EXPECT_EQ(asked().size(), 1U);
}

TEST_F(WebIdentityTest, DestructionRunsPendingCallbacks) {
    const test::HttpScriptServer silent{
        [](test::ScriptConnection& connection) { connection.wait_for_hang_up(30s); }};
    identity_.endpoint = silent.url();
    auto keys = source();
    bool called = false;
    EXPECT_FALSE(keys->try_get([&] { called = true; }).has_value());
    keys.reset();
    EXPECT_TRUE(called);
}

TEST_F(WebIdentityTest, RenewsInTheBackgroundBeforeExpiryWithTheCurrentToken) {
    const auto keys = source();
    ASSERT_EQ(key_of(*keys), "1");
    write_token("jwt 2");
    clock_.advance(56min);
    EXPECT_EQ(key_of(*keys), "1") << "good for four minutes more: nobody waits";
    EXPECT_TRUE(test::eventually([&] { return key_of(*keys) == "2"; }));
    EXPECT_THAT(asked().at(1), HasSubstr("WebIdentityToken=jwt%202"));
    EXPECT_EQ(asked().size(), 2U);
}

TEST_F(WebIdentityTest, AFailedRenewalChangesNothingUntilExpiry) {
    const auto keys = source();
    ASSERT_EQ(key_of(*keys), "1");
    refuse_with(503);
    clock_.advance(56min);
    EXPECT_EQ(key_of(*keys), "1");
    EXPECT_TRUE(test::eventually([&] { return asked().size() == 2; }));
    clock_.advance(3min);
    EXPECT_EQ(key_of(*keys), "1");
    clock_.advance(1min);
    const auto failed = keys->get();
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(failed.error().message, HasSubstr("503 Why: words"));
    refuse_with(200);
    clock_.advance(1s);
    EXPECT_THAT(key_of(*keys), Not(HasSubstr("503")));
}

TEST_F(WebIdentityTest, RetriesARefusalOnceASecond) {
    refuse_with(403);
    const auto keys = source();
    const auto refused = keys->get();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(refused.error().message, HasSubstr("role arn:aws:iam::1:role/r&s: 403 Why: words"));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("jwt")));
    EXPECT_EQ(keys->get().error(), refused.error());
    EXPECT_EQ(asked().size(), 1U);
    refuse_with(200);
    clock_.advance(1s);
    EXPECT_EQ(key_of(*keys), "2");
}

TEST_F(WebIdentityTest, CredentialsThatExpireWithin30SecondsAreAFailure) {
    for (const Duration lifetime : {Duration{-1h}, Duration{0}, Duration{30s}}) {
        shorten_answers(asked().size() + 1, lifetime);
        const std::size_t before = asked().size();
        const auto keys = source();
        const auto refused = keys->get();
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
        EXPECT_THAT(
            refused.error().message,
            HasSubstr("which is past or less than 30 s away: is the clock right?"));
        EXPECT_EQ(keys->get().error(), refused.error());
        EXPECT_EQ(asked().size(), before + 1) << "one exchange a second";
        clock_.advance(1s);
        EXPECT_EQ(key_of(*keys), std::to_string(before + 2));
    }
}

TEST_F(WebIdentityTest, TryGetReportsAnExpirationInThePast) {
    shorten_answers(1, -1h);
    const auto keys = source();
    std::promise<void> answered;
    EXPECT_FALSE(keys->try_get([&] { answered.set_value(); }).has_value());
    answered.get_future().wait();
    const auto refused = keys->try_get([] { ADD_FAILURE() << "it has an answer"; });
    ASSERT_TRUE(refused.has_value());
    ASSERT_FALSE(refused->has_value());
    EXPECT_THAT(
        refused->error().message,
        HasSubstr("the credentials expire at 2026-01-31T11:00:00Z, which is past"));
    EXPECT_EQ(asked().size(), 1U);
}

TEST_F(WebIdentityTest, RenewsShortLivedCredentialsOnceInTenSeconds) {
    shorten_answers(10, 2min);
    const auto keys = source();
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(key_of(*keys), "1");
        std::this_thread::sleep_for(2ms);  // time for an exchange in the background
    }
    EXPECT_EQ(asked().size(), 1U);
    clock_.advance(10s);
    EXPECT_TRUE(test::eventually([&] { return key_of(*keys) == "2"; }));
    EXPECT_EQ(asked().size(), 2U);
}

TEST_F(WebIdentityTest, ManyThreadsCauseOneExchange) {
    const auto keys = source();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] { EXPECT_EQ(key_of(*keys), "1"); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(asked().size(), 1U);
}

TEST_F(WebIdentityTest, NamesAMissingToken) {
    identity_.token_file = folder_.path() + "/none";
    const auto refused = source()->get();
    EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(refused.error().message, HasSubstr(identity_.token_file + " cannot be read"));
}

TEST(WebIdentity, NeedsARoleAndAToken) {
    EXPECT_FALSE(web_identity_from_environment(environment({}), "r").has_value());
    EXPECT_FALSE(
        web_identity_from_environment(environment({{"AWS_ROLE_ARN", "a"}}), "r").has_value());
}

std::string endpoint_of(std::map<std::string, std::string> values) {
    values.emplace("AWS_ROLE_ARN", "a");
    values.emplace("AWS_WEB_IDENTITY_TOKEN_FILE", "/t");
    return web_identity_from_environment(environment(std::move(values)), "eu-west-1")->endpoint;
}

TEST(WebIdentity, UsesTheServiceOfTheRegionUnlessConfigured) {
    EXPECT_EQ(endpoint_of({}), "https://sts.eu-west-1.amazonaws.com/");
    EXPECT_EQ(endpoint_of({{"AWS_REGION", "r"}}), "https://sts.r.amazonaws.com/");
    EXPECT_EQ(
        endpoint_of({{"AWS_REGION", "r"}, {"AWS_DEFAULT_REGION", "d"}}),
        "https://sts.r.amazonaws.com/");
    EXPECT_EQ(
        endpoint_of({{"AWS_REGION", "cn-north-1"}}), "https://sts.cn-north-1.amazonaws.com.cn/");
    EXPECT_EQ(
        endpoint_of({{"AWS_STS_REGIONAL_ENDPOINTS", "legacy"}}), "https://sts.amazonaws.com/");
    EXPECT_EQ(
        endpoint_of({{"AWS_ENDPOINT_URL_STS", "http://sts.svc"}, {"AWS_REGION", "r"}}),
        "http://sts.svc");
}

}  // namespace
}  // namespace stoker::sidecar
