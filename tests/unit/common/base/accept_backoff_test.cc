#include "common/base/accept_backoff.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::chrono_literals;

TEST(AcceptBackoff, PausesGrowToOneSecondAndReset) {
    AcceptBackoff backoff;
    const TimePoint now{1h};
    EXPECT_EQ(backoff.failed(now).pause, 10ms);
    EXPECT_EQ(backoff.failed(now).pause, 20ms);
    for (int i = 0; i < 100; ++i) {
        static_cast<void>(backoff.failed(now));
    }
    EXPECT_EQ(backoff.failed(now).pause, 1s);
    backoff.accepted();
    EXPECT_EQ(backoff.failed(now).pause, 10ms);
}

TEST(AcceptBackoff, LogsOnceAMinuteWithTheSkippedCount) {
    AcceptBackoff backoff;
    const TimePoint start{1h};
    EXPECT_TRUE(backoff.failed(start).log);
    EXPECT_FALSE(backoff.failed(start + 1s).log);
    backoff.accepted();
    EXPECT_FALSE(backoff.failed(start + 59s).log);
    const auto later = backoff.failed(start + 60s);
    EXPECT_TRUE(later.log);
    EXPECT_EQ(later.silent, 2U);
    EXPECT_FALSE(backoff.failed(start + 61s).log);
}

TEST(AcceptBackoff, CountsFailuresOfAllLoops) {
    const std::uint64_t before = AcceptBackoff::failures();
    AcceptBackoff one;
    AcceptBackoff other;
    static_cast<void>(one.failed(TimePoint{}));
    static_cast<void>(other.failed(TimePoint{}));
    EXPECT_EQ(AcceptBackoff::failures(), before + 2);
}

TEST(AcceptBackoff, AbortedConnectionIsNotExhaustion) {
    EXPECT_TRUE(AcceptBackoff::is_exhausted(EMFILE));
    EXPECT_TRUE(AcceptBackoff::is_exhausted(ENFILE));
    EXPECT_FALSE(AcceptBackoff::is_exhausted(ECONNABORTED));
    EXPECT_FALSE(AcceptBackoff::is_exhausted(EAGAIN));
}

}  // namespace
}  // namespace stoker
