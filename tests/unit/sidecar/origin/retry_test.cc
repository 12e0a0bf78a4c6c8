#include "sidecar/origin/retry.h"

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::sys_days{std::chrono::November / 6 / 1994} + 8h};

TEST(Retry, BackoffDoublesWithJitterUpToItsLimit) {
    Prng random{test::seed()};
    RetryPolicy policy;
    policy.attempts_max = 100;
    Duration full = policy.backoff_first;
    for (std::uint32_t attempt = 1; attempt < 99; ++attempt) {
        const auto delay = next_delay(policy, {attempt, true, std::nullopt}, random);
        ASSERT_TRUE(delay.has_value());
        EXPECT_GE(*delay, full / 2 - 1ns) << attempt;
        EXPECT_LE(*delay, full) << attempt;
        full = std::min(full * 2, policy.backoff_max);
    }
}

TEST(Retry, JitterVariesTheDelay) {
    Prng random{test::seed()};
    Duration smallest = 1h;
    Duration largest{};
    for (int i = 0; i < 200; ++i) {
        const auto delay = next_delay({}, {4, true, std::nullopt}, random).value();
        smallest = std::min(smallest, delay);
        largest = std::max(largest, delay);
    }
    EXPECT_LT(smallest, 480ms) << "of 400 to 800 ms";
    EXPECT_GT(largest, 720ms);
}

TEST(Retry, GivesUpAfterTheLastAttempt) {
    Prng random{1};
    const RetryPolicy policy{.attempts_max = 3};
    EXPECT_TRUE(next_delay(policy, {2, true, std::nullopt}, random).has_value());
    EXPECT_FALSE(next_delay(policy, {3, true, std::nullopt}, random).has_value());
    EXPECT_FALSE(next_delay({.attempts_max = 1}, {1, true, std::nullopt}, random).has_value());
}

TEST(Retry, NeverRetriesPermanentFailures) {
    Prng random{1};
    EXPECT_FALSE(next_delay({}, {1, false, 1s}, random).has_value());
}

TEST(Retry, ObeysRetryAfterUpToItsLimit) {
    Prng random{1};
    EXPECT_EQ(next_delay({}, {1, true, 7s}, random), 7s);
    EXPECT_EQ(next_delay({}, {1, true, 24h}, random), 60s) << "a server cannot stop us for a day";
    EXPECT_GE(next_delay({}, {1, true, 0s}, random), 50ms) << "nor hurry us";
}

TEST(Retry, KnowsTransientStatuses) {
    for (const int status : {408, 429, 500, 502, 503, 504, 599}) {
        EXPECT_TRUE(is_transient_status(status)) << status;
    }
    for (const int status : {200, 206, 301, 307, 400, 401, 403, 404, 409, 412, 416, 501, 505}) {
        EXPECT_FALSE(is_transient_status(status)) << status;
    }
}

TEST(Retry, ParsesRetryAfter) {
    struct Case {
        const char* value;
        std::optional<Duration> want;
    };

    for (const Case& one : {
             Case{"0", 0s},
             Case{"120", 120s},
             Case{"Sun, 06 Nov 1994 08:00:37 GMT", 37s},
             Case{"Sun, 06 Nov 1994 07:59:00 GMT", 0s},
             Case{"", std::nullopt},
             Case{"-1", std::nullopt},
             Case{"1.5", std::nullopt},
             Case{"soon", std::nullopt},
             Case{"99999999999", std::nullopt},
             Case{"Sun, 06 Nov 1994 08:00:37 GMT!", std::nullopt},
         }) {
        EXPECT_EQ(parse_retry_after(one.value, kNow), one.want) << one.value;
    }
}

}  // namespace
}  // namespace stoker::sidecar
