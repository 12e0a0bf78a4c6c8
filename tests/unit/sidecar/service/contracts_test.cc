#include "sidecar/service/contracts.h"

#include <set>

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kCount = 400;

SamplerOrder order(std::string contract, std::vector<local::Parameter> parameters = {}) {
    SamplerOrder order;
    order.contract = std::move(contract);
    order.seed = 3;
    order.parameters = std::move(parameters);
    return order;
}

local::Begin begin_of(std::string contract, std::string job, std::uint64_t epoch) {
    local::Begin begin;
    begin.contract = std::move(contract);
    begin.job = std::move(job);
    begin.epoch = epoch;
    begin.seed = 3;
    begin.batch = 20;
    if (begin.contract == "importance") {
        begin.parameters = {{"warmupEpochs", 1}, {"beta", 1}, {"reuseFactor", 100}};
    }
    return begin;
}

TEST(Contracts, NamesWhatItDoesNotKnow) {
    Contracts contracts{kCount, 100};
    EXPECT_THAT(contracts.make(order("fast"), 0).error().message, HasSubstr("no contract 'fast'"));
    const auto unknown = contracts.make(order("importance", {{"bta", 1}}), 0).error();
    EXPECT_EQ(unknown.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(unknown.message, HasSubstr("no parameter 'bta' here; it has: beta"));
    EXPECT_THAT(
        contracts.make(order("importance", {{"beta", 17}}), 0).error().message,
        HasSubstr("beta is 17, outside 0..16"));
    EXPECT_FALSE(contracts.make(order("windowed", {{"beta", 1}}), 0).has_value());
    EXPECT_FALSE(
        contracts.make(order("importance", {{"family", 1}, {"redundancy", 2}}), 0).has_value());
}

TEST(Contracts, AFamilyHasItsOwnSamplerAndParameters) {
    Contracts contracts{kCount, 100};
    EXPECT_TRUE(
        contracts.make(order("importance", {{"family", 1}, {"outRate", 0.2}}), 0).has_value());
    EXPECT_FALSE(contracts.make(order("importance", {{"outRate", 0.2}}), 0).has_value());
    EXPECT_FALSE(
        contracts.make(order("importance", {{"family", 1}, {"beta", 0.2}}), 0).has_value());
}

TEST(Contracts, EveryRankOfAReplicatingJobMayDraw) {
    Contracts contracts{kCount, 100};
    auto two = order("replicate", {{"replication", 2}});
    two.ranks = 2;
    const auto sampler = contracts.make(two, 1).value();
    std::vector<Draw> draws;
    for (const std::uint32_t rank : {1U, 0U}) {
        sampler->begin_epoch(rank, 0, 0);
        sampler->draw(rank, kCount, draws);
    }
    EXPECT_EQ(draws.size(), kCount);
}

TEST(Contracts, AWindowedJobKeepsTheWindowForWhatItHasNotDrawn) {
    Contracts contracts{kCount, 100};
    contracts.on_stored(7, true);
    contracts.on_stored(8, false);
    EXPECT_EQ(contracts.window_keeper(), nullptr);
    const auto sampler = contracts.make(order("windowed"), 0).value();
    const WindowKeeper* keeper = contracts.window_keeper();
    ASSERT_NE(keeper, nullptr);
    sampler->begin_epoch(0, 0, 0);
    EXPECT_TRUE(keeper->keeps(8));
    std::vector<Draw> draws;
    sampler->draw(0, kCount, draws);
    EXPECT_EQ(draws.size(), kCount);
    EXPECT_FALSE(keeper->keeps(8));
}

class ImportanceContract : public testing::Test {
protected:
    // An epoch in which sample i has loss i.
    std::vector<std::uint64_t> run_epoch(std::uint64_t epoch) {
        EXPECT_TRUE(desk.begin(kStream, begin_of("importance", "j", epoch), {}).has_value());
        if (auto fresh = contracts.importance().new_eviction()) {
            eviction = std::move(fresh);
        }
        std::vector<std::uint64_t> all;
        for (bool ended = false; !ended;) {
            const auto drawn = desk.draw(kStream, {epoch, 20}).value();
            std::vector<float> losses(drawn.served.begin(), drawn.served.end());
            desk.on_losses(kStream, {epoch, drawn.served, losses});
            all.insert(all.end(), drawn.served.begin(), drawn.served.end());
            ended = drawn.ended;
        }
        return all;
    }

    [[nodiscard]] bool displaces(SampleIndex incoming, SampleIndex resident) const {
        class Any final : public EvictionPolicy::MayGo {
            [[nodiscard]] bool operator()(SampleIndex /*sample*/) const override { return true; }
        };

        std::vector<SampleIndex> victims;
        return eviction->make_room(incoming, Bytes{100}, Any{}, victims) &&
               victims == std::vector{resident};
    }

    static constexpr StreamId kStream{1};
    Contracts contracts{kCount, 100};
    SamplingDesk desk{kCount, contracts};
    std::unique_ptr<EvictionPolicy> eviction;
};

TEST_F(ImportanceContract, ReadsAllInTheWarmUpAndLessOfWhatMattersLessAfterwards) {
    const auto first = run_epoch(0);
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), kCount);
    run_epoch(1);
    const auto third = run_epoch(2);
    EXPECT_LT(third.size(), kCount * 9 / 10);
    const auto high = std::ranges::count_if(third, [](auto id) { return id >= kCount / 2; });
    EXPECT_GT(high, static_cast<std::ptrdiff_t>(third.size() / 2));
}

TEST_F(ImportanceContract, KeepsWhatTheJobsHoldImportantAndNothingMovesInFullEpochs) {
    run_epoch(0);
    ASSERT_NE(eviction, nullptr);
    EXPECT_EQ(contracts.importance().new_eviction(), nullptr) << "one is enough";
    eviction->on_resident(10, Bytes{100});
    EXPECT_FALSE(displaces(kCount - 1, 10)) << "held in a full epoch";
    run_epoch(1);
    for (int calls = 0; calls < 10; ++calls) {
        eviction->on_read(10, true);
    }
    EXPECT_TRUE(displaces(kCount - 1, 10));
}

}  // namespace
}  // namespace stoker::sidecar
