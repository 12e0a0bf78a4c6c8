#include "sidecar/core/placement.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/domain/segment_format.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint64_t kSamples = 200'000;

// Keys like those of a folder of images; all sizes are equal.
class PlacementTest : public testing::Test {
protected:
    explicit PlacementTest(std::uint64_t samples = kSamples)
        : sizes(samples, 1000) {
        for (std::uint64_t i = 0; i < samples; ++i) {
            keys.push_back(fmt::format("train/n{:08}/n{:08}_{}.JPEG", i / 1300, i / 1300, i));
        }
    }

    static std::vector<std::string> names(std::size_t count) {
        std::vector<std::string> nodes;
        for (std::size_t i = 0; i < count; ++i) {
            nodes.push_back(fmt::format("gpu-pool-7f{:02}", i));
        }
        return nodes;
    }

    [[nodiscard]] Placement placement(
        const std::vector<std::string>& nodes, std::size_t self = 0) const {
        return Placement{
            SampleSizes{sizes},
            [this](SampleIndex sample) -> std::string_view { return keys[sample]; },
            nodes,
            self};
    }

    std::vector<std::uint64_t> sizes;
    std::vector<std::string> keys;
};

class MillionSamples : public PlacementTest {
protected:
    MillionSamples()
        : PlacementTest(1'000'000) {}
};

TEST_F(MillionSamples, SixtyFourNodesGetEqualShares) {
    const auto nodes = names(64);
    const Placement placed = placement(nodes);
    std::vector<std::uint64_t> shares(nodes.size());
    for (SampleIndex sample = 0; sample < sizes.size(); ++sample) {
        ++shares[placed.owner(sample)];
    }
    const double mean = static_cast<double>(sizes.size()) / static_cast<double>(nodes.size());
    EXPECT_LE(static_cast<double>(std::ranges::max(shares)), 1.05 * mean);
    EXPECT_GE(static_cast<double>(std::ranges::min(shares)), 0.95 * mean);
}

TEST_F(PlacementTest, ALostNodeMovesItsOwnShareOnly) {
    for (const std::size_t count : {2U, 3U, 8U, 64U}) {
        const auto nodes = names(count);
        const Placement before = placement(nodes);
        for (const std::size_t lost : {std::size_t{0}, count / 2, count - 1}) {
            auto fewer = nodes;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(lost));
            const Placement after = placement(fewer);
            std::uint64_t moved = 0;
            for (SampleIndex sample = 0; sample < kSamples; ++sample) {
                const bool is_moved = nodes[before.owner(sample)] != fewer[after.owner(sample)];
                EXPECT_EQ(is_moved, before.owner(sample) == lost);
                moved += is_moved ? 1 : 0;
            }
            EXPECT_LE(static_cast<double>(moved), 1.1 * kSamples / static_cast<double>(count));
        }
    }
}

TEST_F(PlacementTest, RunnerUpOfAJoinersSampleIsItsFormerOwner) {
    const auto any = [](std::size_t) { return true; };
    for (const std::size_t count : {2U, 3U, 8U}) {
        const auto nodes = names(count);
        const std::vector<std::string> others{nodes.begin() + 1, nodes.end()};
        const Placement before = placement(others);
        const Placement after = placement(nodes);
        for (SampleIndex sample = 0; sample < kSamples; ++sample) {
            ASSERT_EQ(after.runner_up(sample, any), before.owner(sample) + 1);
        }
    }
}

TEST_F(PlacementTest, RunnerUpOfSeveralJoinersSkipsThem) {
    const auto nodes = names(5);
    const std::vector<std::string> others{nodes.begin() + 2, nodes.end()};
    const Placement before = placement(others);
    const Placement after = placement(nodes);
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        EXPECT_EQ(
            after.runner_up(sample, [](std::size_t node) { return node != 1; }),
            before.owner(sample) + 2);
        EXPECT_EQ(after.runner_up(sample, [](std::size_t) { return false; }), std::nullopt);
    }
}

TEST_F(PlacementTest, AllNodesAgreeInAnyOrderOfNames) {
    const auto nodes = names(5);
    auto reversed = nodes;
    std::ranges::reverse(reversed);
    std::vector<Placement> placements;
    for (std::size_t self = 0; self < nodes.size(); ++self) {
        placements.push_back(placement(nodes, self));
    }
    const Placement other = placement(reversed);
    Bytes sum{};
    for (const Placement& placed : placements) {
        sum += placed.own_bytes();
    }
    EXPECT_EQ(sum, Bytes{domain::record_bytes(1000)} * kSamples);
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        const std::size_t owner = placements[0].owner(sample);
        EXPECT_EQ(reversed[other.owner(sample)], nodes[owner]);
        for (std::size_t self = 0; self < nodes.size(); ++self) {
            EXPECT_EQ(placements[self].is_own(sample), self == owner);
        }
    }
}

// A new object in the middle of the listing moves the indexes of all later samples.
TEST_F(PlacementTest, ANewRevisionMovesNoSample) {
    const auto nodes = names(4);
    const Placement before = placement(nodes);
    std::vector<std::size_t> owners;
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        owners.push_back(before.owner(sample));
    }
    keys.insert(keys.begin(), "train/a-new-one.JPEG");
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        EXPECT_EQ(before.owner(sample + 1), owners[sample]);
    }
}

TEST_F(PlacementTest, TableNamesTheOwnersAndTheHashTheRunnersUp) {
    const auto nodes = names(3);
    const Placement hashed = placement(nodes);
    std::vector<std::uint16_t> owners(kSamples);
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        owners[sample] = static_cast<std::uint16_t>(sample % 3);
    }
    const Placement placed{
        SampleSizes{sizes},
        [this](SampleIndex sample) -> std::string_view { return keys[sample]; },
        nodes,
        1,
        owners};
    EXPECT_TRUE(placed.has_table());
    EXPECT_FALSE(hashed.has_table());
    EXPECT_EQ(placed.own_samples(), (kSamples + 1) / 3);
    EXPECT_EQ(placed.own_payload(), Bytes{1000} * placed.own_samples());
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        ASSERT_EQ(placed.owner(sample), sample % 3);
        ASSERT_EQ(placed.is_own(sample), sample % 3 == 1);
        if (placed.is_own(sample) && hashed.owner(sample) != 1) {
            ASSERT_EQ(
                placed.runner_up(sample, [](std::size_t) { return true; }), hashed.owner(sample))
                << "it has owned the sample before";
        }
    }
}

// Other programs and versions must compute the same: the hash is part of the protocol.
TEST(PlacementHash, HasFixedValues) {
    EXPECT_EQ(placement_hash(""), placement_hash(std::string_view{}));
    EXPECT_NE(placement_hash("a"), placement_hash(std::string_view{"a\0", 2}));
    EXPECT_EQ(placement_hash("node-1"), 0xA9FA01C6815B4680U);
    EXPECT_EQ(placement_hash("train/n01440764/n01440764_10026.JPEG"), 0xC624122DE189EFB6U);
}

}  // namespace
}  // namespace stoker::sidecar
