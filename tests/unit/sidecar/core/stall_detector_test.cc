#include "sidecar/core/stall_detector.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;

constexpr TimePoint kBegin{seconds{100}};

TEST(StallDetector, ReportsAStallLongerThanThePatience) {
    StallDetector detector{seconds{30}};
    detector.begin(kBegin);
    EXPECT_EQ(detector.look(kBegin + seconds{29}, 0), Duration{});
    EXPECT_EQ(detector.look(kBegin + seconds{30}, 0), seconds{30});
    EXPECT_EQ(detector.look(kBegin + seconds{45}, 0), seconds{45});
}

TEST(StallDetector, AnyProgressEndsTheStall) {
    StallDetector detector{seconds{30}};
    detector.begin(kBegin);
    for (int count = 1; count < 10; ++count) {
        EXPECT_EQ(
            detector.look(kBegin + count * seconds{29}, static_cast<std::uint64_t>(count)),
            Duration{});
    }
    EXPECT_EQ(detector.look(kBegin + seconds{9 * 29 + 31}, 9), seconds{31});
}

TEST(StallDetector, RestartsWithEachTry) {
    StallDetector detector{seconds{30}};
    detector.begin(kBegin);
    detector.look(kBegin + seconds{60}, 7);
    detector.begin(kBegin + seconds{100});
    EXPECT_EQ(detector.look(kBegin + seconds{129}, 0), Duration{});
}

}  // namespace
}  // namespace stoker::sidecar
