#include "sidecar/core/idle_watch.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kBegin{seconds{100}};

TEST(IdleWatch, EndsAfterTheIdleTime) {
    IdleWatch watch{minutes{10}, kBegin};
    EXPECT_FALSE(watch.is_over(kBegin, false));
    EXPECT_FALSE(watch.is_over(kBegin + seconds{599}, false));
    EXPECT_TRUE(watch.is_over(kBegin + minutes{10}, false));
}

TEST(IdleWatch, EachUseRestartsTheIdleTime) {
    IdleWatch watch{minutes{10}, kBegin};
    EXPECT_FALSE(watch.is_over(kBegin + minutes{9}, true));
    EXPECT_FALSE(watch.is_over(kBegin + minutes{18}, false));
    EXPECT_TRUE(watch.is_over(kBegin + minutes{19}, false));
}

TEST(IdleWatch, NeverEndsWhileInUse) {
    IdleWatch watch{minutes{10}, kBegin};
    EXPECT_FALSE(watch.is_over(kBegin + minutes{600}, true));
}

}  // namespace
}  // namespace stoker::sidecar
