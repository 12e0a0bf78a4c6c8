#include "sidecar/core/sampling/load_time.h"

#include <cmath>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

Duration seconds(double time) {
    return Duration{static_cast<Duration::rep>(time * 1e9)};
}

// Requests for log-normal sizes around 100 kB, whose times vary by a twentieth.
LoadTime measured(double latency_s, double bytes_per_s, int requests, Prng& random) {
    LoadTime load_time;
    for (int i = 0; i < requests; ++i) {
        double normal = -6;
        for (int j = 0; j < 12; ++j) {
            normal += random.unit();
        }
        const auto bytes = static_cast<std::uint64_t>(1e5 * std::exp(normal));
        const double time = latency_s + static_cast<double>(bytes) / bytes_per_s;
        load_time.note(Bytes{bytes}, seconds(time * (0.95 + 0.1 * random.unit())));
    }
    return load_time;
}

TEST(LoadTime, FindsLatencyTimesBandwidth) {
    Prng random(test::seed());
    for (const double latency_s : {0.005, 0.02, 0.1}) {
        for (const double bytes_per_s : {5e6, 5e7}) {
            const auto found = measured(latency_s, bytes_per_s, 4000, random).latency_bytes();
            ASSERT_TRUE(found.has_value());
            EXPECT_NEAR(std::log2(*found), std::log2(latency_s * bytes_per_s), 1);
        }
    }
}

TEST(LoadTime, FollowsTheOriginWhenItChanges) {
    Prng random(test::seed());
    LoadTime load_time = measured(0.1, 5e7, 4000, random);
    for (int i = 0; i < 8000; ++i) {
        const std::uint64_t bytes = random.below(200'000);
        load_time.note(Bytes{bytes}, seconds(0.001 + static_cast<double>(bytes) / 5e7));
    }
    EXPECT_LE(*load_time.latency_bytes(), 131072);
}

TEST(LoadTime, KnowsNothingFromFewRequestsOrEqualSizes) {
    Prng random(test::seed());
    EXPECT_FALSE(LoadTime{}.latency_bytes().has_value());
    EXPECT_FALSE(measured(0.02, 5e6, 63, random).latency_bytes().has_value());
    LoadTime equal;
    for (int i = 0; i < 1000; ++i) {
        equal.note(Bytes{100'000}, seconds(0.02 + 0.001 * random.unit()));
    }
    EXPECT_FALSE(equal.latency_bytes().has_value());
}

TEST(LoadTime, LatencyBytesAreInfiniteIfLargerObjectsTakeNoLonger) {
    LoadTime load_time;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        load_time.note(
            Bytes{1000 * (1 + i % 10)}, seconds(0.02 - 0.0001 * static_cast<double>(i % 10)));
    }
    EXPECT_TRUE(std::isinf(*load_time.latency_bytes()));
}

// Times of a busy local folder: they vary more than the sizes explain.
TEST(LoadTime, IsInfiniteIfTheSizeExplainsNothing) {
    Prng random(test::seed());
    for (int series = 0; series < 20; ++series) {  // about half of them have a slope above 0
        LoadTime load_time;
        for (int i = 0; i < 2000; ++i) {
            load_time.note(Bytes{1000 + random.below(8000)}, seconds(0.0001 * random.unit()));
        }
        EXPECT_TRUE(std::isinf(*load_time.latency_bytes()));
    }
}

TEST(LoadTime, OneStalledRequestChangesNothing) {
    Prng random(test::seed());
    LoadTime load_time = measured(0.02, 5e6, 4000, random);
    const double before = *load_time.latency_bytes();
    load_time.note(Bytes{100'000}, seconds(600));
    EXPECT_NEAR(std::log2(*load_time.latency_bytes()), std::log2(before), 1);
}

}  // namespace
}  // namespace stoker::sidecar
