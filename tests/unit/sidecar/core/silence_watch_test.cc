#include "sidecar/core/silence_watch.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;

constexpr TimePoint kBegin{seconds{100}};

TEST(SilenceWatch, SaysHowLongNothingHasComeOnceItsPatienceIsOver) {
    SilenceWatch watch{seconds{30}};
    watch.begin(kBegin);
    EXPECT_EQ(watch.look(kBegin + seconds{29}, 0), Duration{});
    EXPECT_EQ(watch.look(kBegin + seconds{30}, 0), seconds{30});
    EXPECT_EQ(watch.look(kBegin + seconds{45}, 0), seconds{45});
}

TEST(SilenceWatch, EveryObjectIsASignOfLife) {
    SilenceWatch watch{seconds{30}};
    watch.begin(kBegin);
    for (int count = 1; count < 10; ++count) {
        EXPECT_EQ(
            watch.look(kBegin + count * seconds{29}, static_cast<std::uint64_t>(count)),
            Duration{});
    }
    EXPECT_EQ(watch.look(kBegin + seconds{9 * 29 + 31}, 9), seconds{31});
}

TEST(SilenceWatch, BeginsAnewWithEachTry) {
    SilenceWatch watch{seconds{30}};
    watch.begin(kBegin);
    watch.look(kBegin + seconds{60}, 7);
    watch.begin(kBegin + seconds{100});
    EXPECT_EQ(watch.look(kBegin + seconds{129}, 0), Duration{});
}

}  // namespace
}  // namespace stoker::sidecar
