#include "sidecar/attached/recent_samples.h"

#include <string_view>

#include <gtest/gtest.h>

namespace stoker::attached {
namespace {

constexpr TimePoint kStart{std::chrono::hours{1}};

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span{text});
}

bool holds(RecentSamples& samples, std::uint32_t id, TimePoint now = kStart) {
    return samples.take_range(domain::SampleId{id}, 0, now).has_value();
}

TEST(RecentSamples, KeepACopyThatOutlivesTheSource) {
    RecentSamples samples;
    {
        const std::string source = "columns and footer";
        samples.keep(domain::SampleId{7}, bytes(source), 6, kStart);
    }
    const auto found = samples.take_range(domain::SampleId{7}, 0, kStart + kRecentAge);
    ASSERT_TRUE(found);
    EXPECT_FALSE(holds(samples, 8));
    EXPECT_FALSE(holds(samples, 7, kStart + kRecentAge + std::chrono::milliseconds{1}));
    EXPECT_TRUE(std::ranges::equal(found->bytes, bytes("columns and footer")))
        << "a response under way keeps its bytes";
}

TEST(RecentSamples, AreDroppedOnceReadCompletely) {
    RecentSamples samples;
    samples.keep(domain::SampleId{7}, bytes("1234567890"), 3, kStart);
    EXPECT_TRUE(samples.take_range(domain::SampleId{7}, 6, kStart));
    EXPECT_TRUE(samples.take_range(domain::SampleId{7}, 1, kStart)) << "the last range";
    EXPECT_FALSE(holds(samples, 7));
    samples.keep(domain::SampleId{7}, bytes("1234567890"), 3, kStart);
    EXPECT_TRUE(holds(samples, 7)) << "the next epoch begins anew";
}

TEST(RecentSamples, DropTheOldestAboveTheirBound) {
    RecentSamples samples{10};
    samples.keep(domain::SampleId{1}, bytes("12345"), 1, kStart);
    samples.keep(domain::SampleId{2}, bytes("12345"), 1, kStart);
    samples.keep(domain::SampleId{1}, bytes("12345"), 1, kStart);
    EXPECT_TRUE(holds(samples, 1) && holds(samples, 2)) << "a second copy of 1 would not fit";
    samples.keep(domain::SampleId{3}, bytes("1"), 0, kStart);
    EXPECT_FALSE(holds(samples, 1));
    EXPECT_TRUE(holds(samples, 2) && holds(samples, 3));
    samples.keep(domain::SampleId{4}, bytes("12345678901"), 1, kStart);
    EXPECT_FALSE(holds(samples, 4)) << "larger than all copies together may be";
    EXPECT_TRUE(holds(samples, 2) && holds(samples, 3));
    samples.drop_old(kStart + kRecentAge + std::chrono::seconds{1});
    samples.keep(domain::SampleId{5}, bytes("1234567890"), 1, kStart);
    EXPECT_TRUE(holds(samples, 5));
}

}  // namespace
}  // namespace stoker::attached
