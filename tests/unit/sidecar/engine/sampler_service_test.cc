#include "sidecar/engine/sampler_service.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include <gmock/gmock.h>

#include "common/base/prng.h"
#include "sidecar/engine/shared_importance.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/in_order.h"

namespace stoker::sidecar {
namespace {

using test::InOrder;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr std::uint32_t kCount = 20;
constexpr StreamId kOne{1};
constexpr StreamId kTwo{2};

class InOrderSource final : public SamplerSource {
public:
    Result<std::unique_ptr<Sampler>> make(
        const Residency& /*node*/, const SamplerSettings& order, std::uint32_t /*rank*/) override {
        if (order.contract == "none") {
            return fail(ErrorCode::kInvalidArgument, "no contract 'none'");
        }
        auto sampler = std::make_unique<InOrder>(kCount, order.ranks);
        made.push_back(sampler.get());
        return sampler;
    }

    [[nodiscard]] bool is_per_rank(const std::string& contract) const override {
        return contract == "each";
    }

    SharedImportance& importance() override { return importance_; }

    void on_stored(SampleIndex sample, bool kept) override { told.emplace_back(sample, kept); }

    void on_gone(SampleIndex sample) override { gone.push_back(sample); }

    std::vector<InOrder*> made;  // may be destroyed
    std::vector<std::pair<SampleIndex, bool>> told;
    std::vector<SampleIndex> gone;

private:
    SharedImportance importance_{kCount, {}};
};

class SamplerServiceTest : public testing::Test {
protected:
    static local::Begin begin(std::string job = "j", std::uint32_t rank = 0) {
        local::Begin begin;
        begin.contract = "windowed";
        begin.job = std::move(job);
        begin.rank = rank;
        begin.world_size = rank + 1;
        begin.batch = 4;
        return begin;
    }

    std::vector<std::uint64_t> draw(StreamId stream, std::uint32_t count, std::uint64_t epoch = 0) {
        return service.draw(stream, {epoch, count}).value().served;
    }

    test::NodeContents node;
    InOrderSource source;
    std::vector<InOrder*>& made = source.made;
    SamplerService service{
        node,
        kCount,
        source,
        SamplerService::Limits{.samplers = 3, .ranks = 8, .outstanding = 30, .horizon = 8}};
};

TEST_F(SamplerServiceTest, ReturnsTheSamplersDrawsUntilTheEpochEnds) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    EXPECT_THAT(draw(kOne, 3), ElementsAre(0, 1, 2));
    const auto drawn = service.draw(kOne, {0, 18}).value();
    EXPECT_THAT(drawn.served, SizeIs(17));
    EXPECT_EQ(drawn.kinds[0], static_cast<std::uint8_t>(local::DrawKind::kImportant));
    EXPECT_TRUE(drawn.ended);
    EXPECT_THAT(draw(kOne, 5), IsEmpty());
}

TEST_F(SamplerServiceTest, RejectsDrawsOfAnEpochNotBegun) {
    EXPECT_EQ(service.draw(kOne, {0, 1}).error().code, ErrorCode::kConflict);
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    EXPECT_EQ(service.draw(kOne, {1, 1}).error().code, ErrorCode::kConflict);
    EXPECT_EQ(service.report(kOne, 1).error().code, ErrorCode::kConflict);
    EXPECT_EQ(service.snapshot(kTwo).error().code, ErrorCode::kConflict);
}

TEST_F(SamplerServiceTest, AnotherPodCannotTakeAnActiveRank) {
    constexpr std::uint64_t kPod = 7;
    constexpr std::uint64_t kOther = 8;
    ASSERT_TRUE(service.begin(kOne, begin(), {}, kPod).has_value());
    EXPECT_EQ(service.begin(kTwo, begin(), {}, kOther).error().code, ErrorCode::kConflict);
    EXPECT_TRUE(service.draw(kOne, {0, 1}).has_value());
    EXPECT_FALSE(service.draw(kTwo, {0, 1}).has_value());
    service.leave(kOne);
    EXPECT_TRUE(service.begin(kTwo, begin(), {}, kOther).has_value());
}

TEST_F(SamplerServiceTest, RanksOfAJobShareItsSampler) {
    auto first = begin("j", 0);
    first.world_size = 2;
    ASSERT_TRUE(service.begin(kOne, first, {}).has_value());
    ASSERT_TRUE(service.begin(kTwo, begin("j", 1), {}).has_value());
    EXPECT_THAT(made, SizeIs(1));
    EXPECT_THAT(draw(kOne, 3), ElementsAre(0, 2, 4));
    EXPECT_THAT(draw(kTwo, 3), ElementsAre(1, 3, 5));
}

TEST_F(SamplerServiceTest, WaitShareOfTheFirstRankCountsForAll) {
    auto first = begin("j", 0);
    first.world_size = 2;
    auto second = begin("j", 1);
    for (const std::uint64_t epoch : {1U, 2U}) {
        first.epoch = second.epoch = epoch;
        first.parameters = {{"waiting", 0.1 * static_cast<double>(epoch)}};
        second.parameters = {{"waiting", 0.9}};
        ASSERT_TRUE(service.begin(kOne, first, {}).has_value());
        ASSERT_TRUE(service.begin(kTwo, second, {}).has_value());
        ASSERT_TRUE(service.begin(kOne, first, {}).has_value()) << "again: a new connection";
    }
    EXPECT_THAT(made.at(0)->waited, ElementsAre(0.1, 0.2));
}

TEST_F(SamplerServiceTest, RanksOfAPerRankContractHaveTheirOwnSamplers) {
    auto first = begin("j", 0);
    auto second = begin("j", 1);
    first.contract = second.contract = "each";
    ASSERT_TRUE(service.begin(kOne, first, {}).has_value());
    ASSERT_TRUE(service.begin(kTwo, second, {}).has_value());
    EXPECT_THAT(made, SizeIs(2));
    EXPECT_THAT(draw(kTwo, 2), ElementsAre(1, 3));
}

TEST_F(SamplerServiceTest, RejectsRanksWithOtherSettings) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    auto other = begin();
    other.seed = 9;
    EXPECT_EQ(service.begin(kTwo, other, {}).error().code, ErrorCode::kConflict);
    service.leave(kOne);
    EXPECT_TRUE(service.begin(kTwo, other, {}).has_value());
    EXPECT_EQ(service.job_count(), 1U);
}

TEST_F(SamplerServiceTest, ParametersMayComeInAnyOrder) {
    auto first = begin();
    first.parameters = {{"a", 1}, {"b", 2}};
    ASSERT_TRUE(service.begin(kOne, first, {}).has_value());
    std::ranges::reverse(first.parameters);
    EXPECT_TRUE(service.begin(kTwo, first, {}).has_value());
}

TEST_F(SamplerServiceTest, AStreamThatTakesOverARankDisablesTheRanksFormerStream) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    ASSERT_TRUE(service.begin(kTwo, begin(), {}).has_value());
    EXPECT_EQ(service.draw(kOne, {0, 1}).error().code, ErrorCode::kConflict);
    service.leave(kOne);
    EXPECT_THAT(draw(kTwo, 1), ElementsAre(0));
}

TEST_F(SamplerServiceTest, RejectsARankOutsideItsWorld) {
    auto wrong = begin();
    wrong.rank = wrong.world_size;
    EXPECT_EQ(service.begin(kOne, wrong, {}).error().code, ErrorCode::kInvalidArgument);
    wrong.world_size = 9;
    EXPECT_EQ(service.begin(kOne, wrong, {}).error().code, ErrorCode::kInvalidArgument);
    wrong = begin();
    wrong.parameters = {{"beta", std::numeric_limits<double>::quiet_NaN()}};
    EXPECT_EQ(service.begin(kOne, wrong, {}).error().code, ErrorCode::kInvalidArgument);
    wrong = begin();
    wrong.contract = "none";
    EXPECT_EQ(service.begin(kOne, wrong, {}).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(service.job_count(), 0U);
}

TEST_F(SamplerServiceTest, NeverDrawsServedSamplesAgain) {
    BeginState state;
    state.served = {std::byte{0b00001011}, std::byte{0}, std::byte{0b1000}};
    ASSERT_TRUE(service.begin(kOne, begin(), state).has_value());
    EXPECT_THAT(draw(kOne, 4), ElementsAre(2, 4, 5, 6));
    EXPECT_THAT(draw(kOne, 20), ElementsAre(7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18));
}

TEST_F(SamplerServiceTest, ReplicatingJobResumesByItsNumberOfDraws) {
    auto again = begin();
    again.contract = "replicate";
    again.skip = 6;
    BeginState state;
    state.served = {std::byte{0xFF}};
    ASSERT_TRUE(service.begin(kOne, again, state).has_value());
    EXPECT_THAT(draw(kOne, 2), ElementsAre(6, 7));
}

TEST_F(SamplerServiceTest, PlanHasUnreadDrawsThenForeseenSamples) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    EXPECT_THAT(
        service.new_plan(kOne, 0).value().samples,
        SizeIs(20));  // all: the horizon is 16 batches of 4
    EXPECT_FALSE(service.new_plan(kOne, 0).has_value());
    draw(kOne, 4);
    EXPECT_FALSE(service.new_plan(kOne, 0).has_value()) << "it was foreseen";
}

TEST_F(SamplerServiceTest, RenewsAPlanOnceHalfOfItIsDrawn) {
    auto small = begin();
    small.batch = 1;  // a horizon of 16
    ASSERT_TRUE(service.begin(kOne, small, {}).has_value());
    EXPECT_THAT(service.new_plan(kOne, 0).value().samples, SizeIs(16));
    draw(kOne, 8);
    EXPECT_FALSE(service.new_plan(kOne, 0).has_value());
    service.on_read(kOne, std::vector<SampleIndex>{0, 1, 2, 3, 4, 5, 7});
    draw(kOne, 1);
    std::vector<SampleIndex> rest(14);
    std::iota(rest.begin(), rest.end(), 6U);
    rest.erase(rest.begin() + 1);
    EXPECT_THAT(service.new_plan(kOne, 0).value().samples, ElementsAreArray(rest));
}

TEST_F(SamplerServiceTest, PlanOmitsServedSamples) {
    BeginState state;
    state.served = {std::byte{0xFF}, std::byte{0xFF}};
    ASSERT_TRUE(service.begin(kOne, begin(), state).has_value());
    EXPECT_THAT(service.new_plan(kOne, 0).value().samples, ElementsAre(16, 17, 18, 19));
    draw(kOne, 2);
    EXPECT_FALSE(service.new_plan(kOne, 0).has_value());
}

TEST_F(SamplerServiceTest, ReportsSamplesStoredBeforeASamplerWasMade) {
    node.store(service, 3, true);
    service.note_paid(3);
    node.store(service, 4, true);
    node.store(service, 5, false);
    node.drop(service, 5);
    ASSERT_TRUE(service.begin(kOne, begin("a"), {}).has_value());
    ASSERT_TRUE(service.begin(kTwo, begin("b"), {}).has_value());
    node.store(service, 6, false);
    node.drop(service, 3);
    node.drop(service, 7);
    EXPECT_THAT(made.at(0)->stored, ElementsAre(3, 4, 6));
    EXPECT_THAT(made.at(1)->stored, ElementsAre(3, 4, 6));
    EXPECT_THAT(
        source.told,
        ElementsAre(
            std::pair{3U, true}, std::pair{4U, true}, std::pair{5U, false}, std::pair{6U, false}));
    EXPECT_THAT(source.gone, ElementsAre(5, 3, 7));
}

TEST_F(SamplerServiceTest, FirstDrawAfterAFetchIsReportedAsItsCause) {
    node.store(service, 0, true);
    service.note_paid(0);
    node.store(service, 1, true);
    ASSERT_TRUE(service.begin(kOne, begin("a"), {}).has_value());
    ASSERT_TRUE(service.begin(kTwo, begin("b"), {}).has_value());
    const auto on_node = [this](StreamId stream, std::uint32_t count) {
        std::vector<bool> flags;
        const auto drawn = service.draw(stream, {0, count}).value();
        for (const auto kind : drawn.kinds) {
            flags.push_back((kind & local::kKindOnNode) != 0);
        }
        return flags;
    };
    EXPECT_THAT(on_node(kOne, 3), ElementsAre(true, false, false));
    EXPECT_THAT(on_node(kTwo, 4), ElementsAre(true, true, true, false));
    node.store(service, 4, true);
    node.drop(service, 4);
    EXPECT_THAT(on_node(kTwo, 1), ElementsAre(false));
}

TEST_F(SamplerServiceTest, PassesLossesOnWithUnknownIdsMarked) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    service.on_losses(kOne, {0, {1, 1ULL << 32U}, {0.5F, 2}});
    service.on_losses(kOne, {7, {1}, {0.5F}});
    service.on_losses(kTwo, {0, {1}, {0.5F}});
    EXPECT_THAT(
        made.at(0)->losses,
        ElementsAre(std::tuple{0U, 1U, 0.5F}, std::tuple{0U, UINT32_MAX, 2.0F}));
    EXPECT_EQ(service.begin(kOne, begin(), {}).value().losses, 2U);
}

TEST_F(SamplerServiceTest, PassesPOthersToTheSampler) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    service.on_losses(kOne, {0, {1, 2}, {0.5F, 2}});
    service.on_losses(kOne, {0, {3, 1ULL << 32U}, {0.5F, 2}, {0.25F, 0.125F}});
    service.on_losses(kOne, {7, {4}, {0.5F}, {0.5F}});
    EXPECT_THAT(
        made.at(0)->p_others, ElementsAre(std::pair{3U, 0.25F}, std::pair{UINT32_MAX, 0.125F}));
}

TEST_F(SamplerServiceTest, IdleJobKeepsItsSamplerUntilAnotherJobNeedsItsPlace) {
    ASSERT_TRUE(service.begin(kOne, begin("a"), {}).has_value());
    service.leave(kOne);
    ASSERT_TRUE(service.begin(kOne, begin("a"), {}).has_value());
    EXPECT_THAT(made, SizeIs(1));
    service.leave(kOne);
    for (const auto& [stream, job] : {std::pair{2, "b"}, {3, "c"}, {4, "d"}}) {
        ASSERT_TRUE(service.begin(StreamId(stream), begin(job), {}).has_value());
    }
    EXPECT_EQ(service.job_count(), 3U);
    EXPECT_EQ(service.begin(kOne, begin("a"), {}).error().code, ErrorCode::kResourceExhausted);
}

TEST_F(SamplerServiceTest, LimitsUnreadDraws) {
    ASSERT_TRUE(service.begin(kOne, begin(), {}).has_value());
    draw(kOne, 20);
    EXPECT_EQ(service.draw(kOne, {0, 11}).error().code, ErrorCode::kResourceExhausted);
    service.on_read(kOne, std::vector<SampleIndex>{0, 0, 0, 1});
    EXPECT_TRUE(service.draw(kOne, {0, 12}).has_value());
    EXPECT_EQ(
        service.draw(kOne, {0, local::kDrawSamplesMax + 1}).error().code,
        ErrorCode::kInvalidArgument);
}

TEST_F(SamplerServiceTest, RestoresASnapshotOnlyIntoAFreshSampler) {
    EXPECT_TRUE(service.begin(kOne, begin(), {{}, "kept"}).has_value());
    EXPECT_EQ(made.at(0)->restored, "kept");
    EXPECT_TRUE(service.begin(kOne, begin(), {{}, "newer"}).has_value());
    EXPECT_EQ(made.at(0)->restored, "kept");
    EXPECT_THAT(service.snapshot(kOne).value().state, SizeIs(5));
}

TEST_F(SamplerServiceTest, CorruptSnapshotLeavesAFreshSampler) {
    EXPECT_TRUE(service.begin(kOne, begin(), {{}, "rubbish"}).has_value());
    ASSERT_THAT(made, SizeIs(2));
    EXPECT_EQ(made.at(1)->restored, "");
}

// Rank 0 of 2 reads on this node, rank 1 on another.
class SpreadJobTest : public SamplerServiceTest {
protected:
    SpreadJobTest() {
        service.set_on_losses(
            [this](const std::string& job, std::uint64_t epoch, auto samples, auto losses) {
                const auto sum = std::accumulate(losses.begin(), losses.end(), 0.0F);
                passed.emplace_back(job, epoch, samples.size(), sum);
            });
    }

    Status begin_epoch(std::uint64_t epoch, StreamId stream = kOne, std::uint32_t rank = 0) {
        local::Begin message = begin("j", rank);
        message.epoch = epoch;
        message.world_size = 2;
        const auto begun = service.begin(stream, message, {});
        return begun ? Status{} : Status{fail(begun.error())};
    }

    void hear(std::uint64_t epoch, const std::string& job = "j") {
        service.on_losses_elsewhere(
            job, epoch, std::vector<SampleIndex>{7}, std::vector<float>{.5F});
    }

    std::vector<std::tuple<std::string, std::uint64_t, std::size_t, float>> passed;
};

TEST_F(SpreadJobTest, LossesArePassedOnWhileRanksReadElsewhere) {
    ASSERT_TRUE(begin_epoch(4));
    service.on_losses(kOne, {4, {1, 2}, {1, 2}});
    EXPECT_THAT(passed, ElementsAre(std::tuple{"j", 4U, 2U, 3.0F}));
    service.on_losses(kOne, {3, {1, 2}, {1, 2}});
    EXPECT_THAT(passed, SizeIs(1)) << "of another epoch";
    ASSERT_TRUE(begin_epoch(4, kTwo, 1));
    service.on_losses(kOne, {4, {1, 2}, {1, 2}});
    EXPECT_THAT(passed, SizeIs(1)) << "all ranks read here";
}

TEST_F(SpreadJobTest, LossesOfAnotherNodeEnterTheSampler) {
    ASSERT_TRUE(begin_epoch(4));
    for (const std::uint64_t epoch : {2, 3, 4, 5, 6}) {
        hear(epoch);
    }
    ASSERT_THAT(made.at(0)->losses, SizeIs(3)) << "of this epoch and of those next to it";
    EXPECT_EQ(std::get<1>(made.at(0)->losses.front()), 7U);
    EXPECT_GE(std::get<0>(made.at(0)->losses.front()), 2U) << "of none of our ranks";
    EXPECT_THAT(passed, IsEmpty()) << "they are not passed on again";
    ASSERT_TRUE(begin_epoch(5));
    EXPECT_EQ(service.shared_epoch("j"), 5U);
}

TEST_F(SpreadJobTest, LossesOfJobsThatDoNotReadHereAreIgnored) {
    hear(0);
    ASSERT_TRUE(begin_epoch(0));
    hear(0, "other");
    EXPECT_EQ(service.shared_epoch("other"), std::nullopt);
    EXPECT_EQ(service.job_count(), 1U);
    ASSERT_TRUE(begin_epoch(0, kTwo, 1));
    hear(0);
    EXPECT_EQ(service.shared_epoch("j"), std::nullopt) << "all ranks read here";
    service.leave(kOne);
    service.leave(kTwo);
    hear(0);
    EXPECT_EQ(service.shared_epoch("j"), std::nullopt) << "no rank reads here";
    EXPECT_THAT(made.at(0)->losses, IsEmpty());
}

// Leaders change at random positions; each rank's epoch stays complete and without repeats.
TEST_F(SamplerServiceTest, LeaderChangesStillServeEverySampleOnce) {
    Prng prng{test::seed()};
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint64_t> served;
        while (served.size() < kCount) {
            InOrderSource samplers;
            SamplerService leader{test::kEmptyNode, kCount, samplers};
            BeginState state;
            state.served.resize(kCount / 8 + 1);
            for (const auto sample : served) {
                state.served[sample / 8] |= std::byte{1} << (sample % 8);
            }
            ASSERT_TRUE(leader.begin(kOne, begin(), state).has_value());
            const auto count = static_cast<std::uint32_t>(1 + prng.below(kCount));
            const auto drawn = leader.draw(kOne, {0, count}).value();
            served.insert(served.end(), drawn.served.begin(), drawn.served.end());
        }
        std::ranges::sort(served);
        std::vector<std::uint64_t> all(kCount);
        std::iota(all.begin(), all.end(), 0U);
        ASSERT_EQ(served, all);
    }
}

}  // namespace
}  // namespace stoker::sidecar
