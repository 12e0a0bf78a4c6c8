#include "sidecar/store/segment_numbers.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using test::FaultDevice;

TEST(SegmentNumbers, AreUsedOnceWhateverCrashHappens) {
    FaultDevice device{1};
    std::set<std::uint32_t> seen;
    for (std::uint64_t life = 0; life < 50; ++life) {
        device.kill_after(life % 7);
        if (auto numbers = SegmentNumbers::open(device, "/node", 0); numbers.has_value()) {
            for (int i = 0; i < 1500; ++i) {
                if (const auto seq = numbers->next(); seq.has_value()) {
                    EXPECT_TRUE(seen.insert(seq->value()).second) << seq->value();
                }
            }
        }
        if (life % 3 == 0) {
            device.power_cut();
        }
        device.revive();
    }
    EXPECT_GT(seen.size(), 10'000U);
}

TEST(SegmentNumbers, StartAtTheLowestAllowed) {
    FaultDevice device{1};
    EXPECT_EQ(
        SegmentNumbers::open(device, "/node", 500).value().next().value(), domain::SegmentSeq{500});
}

TEST(SegmentNumbers, KeepOneFileThatNamesTheEndOfTheReservedNumbers) {
    FaultDevice device{1};
    auto numbers = SegmentNumbers::open(device, "/node", 0).value();
    for (int i = 0; i < 5000; ++i) {
        ASSERT_TRUE(numbers.next().has_value());
    }
    EXPECT_EQ(device.paths(), (std::vector<std::string>{"/node/segments/next.5121"}));
}

TEST(SegmentNumbers, EndInsteadOfWrapping) {
    FaultDevice device{1};
    auto numbers = SegmentNumbers::open(device, "/node", (1ULL << 32U) - 2).value();
    EXPECT_TRUE(numbers.next().has_value());
    EXPECT_EQ(numbers.next().value(), domain::SegmentSeq{4294967295U});
    EXPECT_EQ(numbers.next().error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(
        SegmentNumbers::open(device, "/node", 0).value().next().error().code,
        ErrorCode::kResourceExhausted);
}

TEST(SegmentNumbers, AreRefusedUntilAMarkIsDurable) {
    FaultDevice device{1};
    auto numbers = SegmentNumbers::open(device, "/node", 0).value();
    device.set_read_only(true);
    EXPECT_EQ(numbers.next().error().code, ErrorCode::kUnavailable);
    device.set_read_only(false);
    EXPECT_TRUE(numbers.next().has_value());
}

}  // namespace
}  // namespace stoker::sidecar
