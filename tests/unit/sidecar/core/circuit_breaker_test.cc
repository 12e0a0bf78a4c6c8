#include "sidecar/core/circuit_breaker.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};

TEST(CircuitBreaker, AllowsAllRequestsBeforeAFailure) {
    CircuitBreaker breaker;
    EXPECT_TRUE(breaker.allows(kStart));
    breaker.on_start();
    EXPECT_TRUE(breaker.allows(kStart));
    EXPECT_EQ(breaker.retries_at(), std::nullopt);
}

TEST(CircuitBreaker, AllowsOneProbeAfterTheBackoff) {
    CircuitBreaker breaker{{seconds{1}, seconds{8}}};
    breaker.on_failure(kStart);
    EXPECT_FALSE(breaker.allows(kStart));
    EXPECT_EQ(breaker.retries_at(), kStart + seconds{1});
    EXPECT_TRUE(breaker.allows(kStart + seconds{1}));
    breaker.on_start();
    EXPECT_FALSE(breaker.allows(kStart + seconds{1}));
    EXPECT_EQ(breaker.retries_at(), std::nullopt);
}

TEST(CircuitBreaker, AllowsAllRequestsLongAfterTheBackoff) {
    CircuitBreaker breaker{{seconds{1}, seconds{8}}};
    breaker.on_failure(kStart);
    breaker.on_start();
    EXPECT_FALSE(breaker.allows(kStart + seconds{8}));
    EXPECT_TRUE(breaker.allows(kStart + seconds{9}));
    breaker.on_failure(kStart + seconds{9});
    EXPECT_FALSE(breaker.allows(kStart + seconds{10})) << "another failure counts";
}

TEST(CircuitBreaker, DoublesTheWaitWithEachFailedProbeUpToTheLimit) {
    CircuitBreaker breaker{{seconds{1}, seconds{3}}};
    TimePoint now = kStart;
    breaker.on_failure(now);
    for (const int wait : {2, 3, 3}) {
        now = *breaker.retries_at();
        breaker.on_start();
        breaker.on_failure(now);
        EXPECT_EQ(breaker.retries_at(), now + seconds{wait});
    }
}

TEST(CircuitBreaker, IgnoresFailuresOfRequestsFromBeforeItOpened) {
    CircuitBreaker breaker{{seconds{1}, seconds{8}}};
    breaker.on_failure(kStart);
    breaker.on_failure(kStart + seconds{5});
    EXPECT_EQ(breaker.retries_at(), kStart + seconds{1});
}

TEST(CircuitBreaker, ClosesWithTheFirstSuccess) {
    CircuitBreaker breaker;
    breaker.on_failure(kStart);
    breaker.on_success();
    EXPECT_TRUE(breaker.is_closed());
    EXPECT_TRUE(breaker.allows(kStart));
}

TEST(CircuitBreaker, AllowsANewProbeAfterACancelledOne) {
    CircuitBreaker breaker;
    breaker.on_failure(kStart);
    const TimePoint later = *breaker.retries_at();
    breaker.on_start();
    breaker.on_abandoned();
    EXPECT_TRUE(breaker.allows(later));
}

}  // namespace
}  // namespace stoker::sidecar
