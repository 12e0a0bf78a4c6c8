#include "operator/sidecars/token_review.h"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

TokenOwner good_owner() {
    TokenOwner owner;
    owner.username = "system:serviceaccount:ml:trainer";
    owner.pod_name = "mnist-a1-0-x";
    owner.node_name = "node-1";
    return owner;
}

TEST(IdentifyPod, ReturnsNamespaceAccountPodAndNode) {
    const Result<PodIdentity> identity = identify_pod(good_owner());
    ASSERT_TRUE(identity);
    EXPECT_EQ(*identity, (PodIdentity{"ml", "trainer", "mnist-a1-0-x", "node-1"}));
}

TEST(IdentifyPod, RejectsTokensThatAreNotAPods) {
    TokenOwner account = good_owner();
    account.pod_name.clear();
    TokenOwner person = good_owner();
    person.username = "jane";
    TokenOwner odd = good_owner();
    odd.username = "system:serviceaccount:ml";
    for (const TokenOwner& owner : {account, person, odd, TokenOwner{}}) {
        const Result<PodIdentity> identity = identify_pod(owner);
        ASSERT_FALSE(identity);
        EXPECT_EQ(identity.error().code, ErrorCode::kForbidden);
    }
}

TEST(LooksLikeToken, RequiresThreePartsOfBase64) {
    EXPECT_TRUE(looks_like_token("eyJh.eyJh-_9.sig"));
    for (const char* text : {"", ".", "..", "a.b", "a..c", "a.b.", ".b.c", "a.b.c.d", "a.b.c="}) {
        EXPECT_FALSE(looks_like_token(text)) << text;
    }
    EXPECT_FALSE(looks_like_token("a.b." + std::string(20'000, 'c')));
}

struct TokenReviewAuthenticatorTest : ::testing::Test {
    testing::ManualClock clock;
    std::deque<std::function<void()>> tasks;
    std::vector<std::string> asked;
    Result<TokenOwner> answer = good_owner();
    std::vector<Result<PodIdentity>> heard;
    TokenReviewAuthenticator authenticator{
        [this](const std::string& token) {
            asked.push_back(token);
            return answer;
        },
        [this](std::function<void()> task) { tasks.push_back(std::move(task)); },
        clock,
        {.answer_count_max = 2, .waiting_max = 3}};

    void authenticate(const std::string& token) {
        authenticator.authenticate(
            token, [this](Result<PodIdentity> identity) { heard.push_back(std::move(identity)); });
    }

    void run_tasks() {
        while (!tasks.empty()) {
            tasks.front()();
            tasks.pop_front();
        }
    }
};

TEST_F(TokenReviewAuthenticatorTest, CachesASuccessForAMinute) {
    authenticate("a.b.c");
    run_tasks();
    clock.advance(seconds{59});
    authenticate("a.b.c");
    run_tasks();
    EXPECT_EQ(asked.size(), 1U);
    clock.advance(seconds{1});
    authenticate("a.b.c");
    run_tasks();
    EXPECT_EQ(asked.size(), 2U);
    ASSERT_EQ(heard.size(), 3U);
    EXPECT_EQ(heard[1]->pod, "mnist-a1-0-x");
}

TEST_F(TokenReviewAuthenticatorTest, CachesARefusalForTenSeconds) {
    answer = fail(ErrorCode::kForbidden, "token has expired");
    authenticate("a.b.c");
    run_tasks();
    clock.advance(seconds{9});
    authenticate("a.b.c");
    run_tasks();
    EXPECT_EQ(asked.size(), 1U);
    clock.advance(seconds{1});
    answer = good_owner();
    authenticate("a.b.c");
    run_tasks();
    EXPECT_TRUE(heard.back());
}

TEST_F(TokenReviewAuthenticatorTest, TimeoutIsNotARefusal) {
    answer = fail(ErrorCode::kUnavailable, "connection refused");
    authenticate("a.b.c");
    run_tasks();
    ASSERT_FALSE(heard.at(0));
    EXPECT_EQ(heard[0].error().code, ErrorCode::kUnavailable);
    answer = good_owner();
    authenticate("a.b.c");
    run_tasks();
    EXPECT_TRUE(heard.at(1));
}

TEST_F(TokenReviewAuthenticatorTest, ConcurrentReviewsOfOneTokenAreOneCall) {
    authenticate("a.b.c");
    authenticate("a.b.c");
    authenticate("a.b.c");
    EXPECT_EQ(tasks.size(), 1U);
    authenticate("x.y.z");  // over waiting_max
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].error().code, ErrorCode::kResourceExhausted);
    run_tasks();
    EXPECT_EQ(asked.size(), 1U);
    EXPECT_EQ(heard.size(), 4U);
}

TEST_F(TokenReviewAuthenticatorTest, GarbageNeverReachesTheApiServer) {
    authenticate("garbage");
    EXPECT_TRUE(tasks.empty());
    EXPECT_EQ(heard.at(0).error().code, ErrorCode::kForbidden);
}

TEST_F(TokenReviewAuthenticatorTest, LimitsItsCache) {
    for (const char* token : {"a.a.a", "b.b.b", "c.c.c", "d.d.d", "c.c.c", "d.d.d"}) {
        authenticate(token);
        run_tasks();
    }
    EXPECT_EQ(asked.size(), 4U);
    EXPECT_EQ(heard.size(), 6U);
}

}  // namespace
}  // namespace stoker::control
