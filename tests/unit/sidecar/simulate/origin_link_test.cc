#include "sidecar/simulate/origin_link.h"

#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{};

OriginSpec spec(std::uint32_t requests_max) {
    return {milliseconds{10}, Bytes{1000}, requests_max};
}

TEST(OriginLink, TakesLatencyAndTransfer) {
    OriginLink link{spec(8)};
    EXPECT_EQ(link.transfer(kStart, Bytes{100}), kStart + milliseconds{110});
}

TEST(OriginLink, OverlapsLatenciesAndSharesTheBandwidth) {
    OriginLink link{spec(8)};
    link.transfer(kStart, Bytes{100});
    EXPECT_EQ(link.transfer(kStart, Bytes{100}), kStart + milliseconds{210});
}

TEST(OriginLink, WaitsForASlot) {
    OriginLink link{spec(1)};
    link.transfer(kStart, Bytes{100});
    EXPECT_EQ(link.transfer(kStart, Bytes{100}), kStart + milliseconds{220});
}

TEST(OriginLink, GainsNothingFromIdleTime) {
    OriginLink link{spec(2)};
    link.transfer(kStart, Bytes{100});
    const TimePoint later = kStart + milliseconds{5000};
    EXPECT_EQ(link.transfer(later, Bytes{100}), later + milliseconds{110});
}

}  // namespace
}  // namespace stoker::simulate
