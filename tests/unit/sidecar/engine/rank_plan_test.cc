#include "sidecar/engine/rank_plan.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/engine/contracts.h"
#include "sidecar/engine/sampler_service.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/in_order.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 5000;
constexpr StreamId kOne{1};

struct Position {
    SampleIndex sample = 0;
    bool is_read = false;
};

// The plan as the fetch engine has it: applies each change, and marks the first unread occurrence
// of a read sample.
struct Mirror {
    std::vector<Position> positions;

    void apply(const PlanTail& tail) {
        positions.resize(tail.from);
        for (const SampleIndex sample : tail.samples) {
            positions.push_back({sample, false});
        }
    }

    void read(SampleIndex sample) {
        const auto unread = std::ranges::find_if(positions, [sample](const Position& position) {
            return position.sample == sample && !position.is_read;
        });
        if (unread != positions.end()) {
            unread->is_read = true;
        }
    }

    [[nodiscard]] std::vector<SampleIndex> first_unread(std::size_t count) const {
        std::vector<SampleIndex> samples;
        for (const Position& position : positions) {
            if (!position.is_read && samples.size() < count) {
                samples.push_back(position.sample);
            }
        }
        return samples;
    }
};

std::vector<SampleIndex> from_to(SampleIndex first, SampleIndex end) {
    std::vector<SampleIndex> samples(end - first);
    std::iota(samples.begin(), samples.end(), first);
    return samples;
}

TEST(RankPlan, ExtendsThePlanInForce) {
    test::InOrder sampler{20, 1};
    sampler.begin_epoch(0, 0, 0);
    RankPlan plan{0, 16, {}};
    EXPECT_EQ(plan.renew(sampler, 0).value().samples, from_to(0, 16));
    plan.draw(sampler, 9);
    const PlanTail tail = plan.renew(sampler, 16).value();
    EXPECT_EQ(tail.from, 9U);
    EXPECT_EQ(tail.samples, from_to(9, 20));
}

TEST(RankPlan, SendsTheWholePlanIfAnotherIsInForce) {
    test::InOrder sampler{20, 1};
    sampler.begin_epoch(0, 0, 0);
    RankPlan plan{0, 16, {}};
    plan.renew(sampler, 0);
    plan.draw(sampler, 9);
    const PlanTail tail = plan.renew(sampler, 3).value();
    EXPECT_EQ(tail.from, 0U);
    EXPECT_EQ(tail.samples, from_to(0, 20));
}

class RankPlanTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Contracts, RankPlanTest, testing::Values("windowed", "replicate"));

TEST_P(RankPlanTest, ChangesLeaveTheUnreadDrawsInTheirOrder) {
    Prng luck{test::seed()};
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    local::Begin begin;
    begin.contract = GetParam();
    begin.batch = 32;
    ASSERT_TRUE(service.begin(kOne, begin, {}).has_value());
    Mirror mirror;
    std::vector<SampleIndex> unread;
    std::size_t extended = 0;
    std::size_t whole = 0;
    for (bool has_ended = false; !has_ended;) {
        const auto drawn =
            service.draw(kOne, {0, 1 + static_cast<std::uint32_t>(luck.below(64))}).value();
        has_ended = drawn.ended;
        unread.insert(unread.end(), drawn.served.begin(), drawn.served.end());
        const auto size = static_cast<std::uint32_t>(mirror.positions.size());
        if (luck.below(8) > 0) {
            if (const auto tail = service.new_plan(kOne, size)) {
                (tail->from > 0 ? extended : whole) += 1;
                mirror.apply(*tail);
            }
            ASSERT_EQ(mirror.first_unread(unread.size()), unread);
        }
        for (std::size_t left = luck.below(unread.size() + 1); left > 0; --left) {
            const SampleIndex sample = unread[luck.below(std::min<std::size_t>(unread.size(), 3))];
            unread.erase(std::ranges::find(unread, sample));
            mirror.read(sample);
            service.on_read(kOne, std::vector<SampleIndex>{sample});
        }
    }
    EXPECT_GT(extended, 1U);
    EXPECT_GT(whole, 1U) << "positions that were read are forgotten";
}

}  // namespace
}  // namespace stoker::sidecar
