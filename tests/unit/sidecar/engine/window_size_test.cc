#include "sidecar/engine/window_size.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr std::uint64_t kPeriod = 100;

TEST(WindowSize, GrowsAtOnceInQuartersOfTheStandardSize) {
    WindowSize size{Bytes{80}, kPeriod};
    EXPECT_EQ(size.size(), Bytes{80});
    size.note(Bytes{80}, 1);
    EXPECT_EQ(size.size(), Bytes{80});
    size.note(Bytes{81}, 1);
    EXPECT_EQ(size.size(), Bytes{100});
    size.note(Bytes{121}, 1);
    EXPECT_EQ(size.size(), Bytes{140});
}

TEST(WindowSize, ReturnsBytesUnneededForTwoPeriods) {
    WindowSize size{Bytes{80}, kPeriod};
    size.note(Bytes{160}, 1);
    size.note(Bytes{0}, kPeriod - 2);
    EXPECT_EQ(size.size(), Bytes{160}) << "a pause returns nothing";
    size.note(Bytes{100}, 1);
    EXPECT_EQ(size.size(), Bytes{160});
    size.note(Bytes{90}, kPeriod);
    EXPECT_EQ(size.size(), Bytes{100}) << "the larger need of the last two periods";
}

TEST(WindowSize, ReturnsAllAtAReset) {
    WindowSize size{Bytes{80}, kPeriod};
    size.note(Bytes{160}, 1);
    size.reset();
    EXPECT_EQ(size.size(), Bytes{80});
    EXPECT_EQ(size.needed(), Bytes{0});
}

}  // namespace
}  // namespace stoker::sidecar
