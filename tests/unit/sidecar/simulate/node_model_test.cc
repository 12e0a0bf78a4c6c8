#include "sidecar/simulate/node_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/lru.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/simulate/trainer_shuffle.h"

namespace stoker::simulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kSamples = 10;
constexpr std::uint64_t kRecord = domain::record_bytes(100);

// Remembers what it is told is there.
class Listener final : public sidecar::Sampler {
public:
    void on_stored(SampleIndex sample) override { stored.push_back(sample); }

    void on_gone(SampleIndex sample) override { std::erase(stored, sample); }

    void begin_epoch(std::uint32_t, std::uint64_t, std::uint64_t) override {}

    void draw(std::uint32_t, std::size_t, std::vector<Draw>&) override {}

    void foresee(std::uint32_t, std::size_t, std::vector<SampleIndex>&) const override {}

    void on_losses(std::uint32_t, std::span<const SampleIndex>, std::span<const float>) override {}

    [[nodiscard]] sidecar::EpochReport report(std::uint32_t) const override { return {}; }

    [[nodiscard]] std::span<const float> relative_importance() const override { return {}; }

    [[nodiscard]] std::string snapshot() const override { return {}; }

    bool restore(std::string_view) override { return true; }

    std::vector<SampleIndex> stored;
};

class NodeModelTest : public testing::Test {
protected:
    void make(std::uint64_t residents, std::uint64_t window, std::size_t jobs = 1) {
        NodeModel::Setting setting;
        setting.sizes = sizes_;
        setting.resident_bytes = Bytes{residents * kRecord};
        setting.window_bytes = Bytes{window * kRecord};
        setting.policy = policy_.get();
        setting.samplers = {&listener_};
        setting.samplers.resize(jobs, &other_listener_);
        node_.emplace(std::move(setting));
        for (std::size_t job = 0; job < jobs; ++job) {
            node_->begin_epoch({job, 0, true}, now_);
        }
    }

    Batch request(std::size_t job, std::vector<SampleIndex> samples) {
        Batch batch;
        for (const SampleIndex sample : samples) {
            batch.draws.push_back({sample, sample, Draw::Kind::kPlain});
        }
        node_->request(job, batch, figures_, now_);
        return batch;
    }

    void foresee(const std::vector<SampleIndex>& samples) {
        node_->foresee(0, samples, figures_, now_);
    }

    void read(std::size_t job, std::vector<SampleIndex> samples) {
        node_->consume(job, request(job, std::move(samples)), figures_, now_);
    }

    std::vector<std::uint64_t> sizes_ = std::vector<std::uint64_t>(kSamples, 100);
    std::unique_ptr<sidecar::EvictionPolicy> policy_ = std::make_unique<sidecar::NeverEvict>();
    Listener listener_;
    Listener other_listener_;
    std::optional<NodeModel> node_;
    EpochFigures figures_;
    TimePoint now_{};
};

TEST_F(NodeModelTest, KeepsWhatComesFirstAndServesItAsHits) {
    make(2, 0);
    read(0, {4, 5, 6});
    EXPECT_THAT(listener_.stored, ElementsAre(4, 5));
    EXPECT_EQ(figures_.origin_requests, 3U);
    EXPECT_EQ(figures_.origin_bytes, Bytes{300});
    node_->begin_epoch({0, 1, true}, now_);
    read(0, {6, 5, 4});
    EXPECT_EQ(figures_.hits, 2U);
    EXPECT_EQ(figures_.origin_requests, 4U);
}

TEST_F(NodeModelTest, DropsAWindowSampleWhenEveryJobHasReadIt) {
    make(0, 2, 2);
    read(0, {4});
    EXPECT_THAT(listener_.stored, ElementsAre(4));
    read(1, {4});
    EXPECT_THAT(listener_.stored, IsEmpty());
    EXPECT_EQ(figures_.hits, 1U);
    EXPECT_EQ(figures_.origin_requests, 1U);
}

TEST_F(NodeModelTest, AFullWindowGivesUpTheOldestThatNobodyHolds) {
    make(0, 2, 2);
    const Batch held = request(0, {1});
    read(0, {2});
    read(0, {3});
    EXPECT_THAT(listener_.stored, ElementsAre(1, 3));
    node_->consume(0, held, figures_, now_);
    EXPECT_THAT(listener_.stored, ElementsAre(1, 3)) << "the other job needs both";
}

TEST_F(NodeModelTest, KeepsInTheWindowWhatAPlanNamesTwice) {
    make(0, 3);
    read(0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    figures_ = {};
    node_->begin_epoch({0, 1, false}, now_);
    const std::vector<SampleIndex> plan = {4, 5, 4};
    node_->expect(0, plan);
    read(0, {4, 5});
    EXPECT_THAT(listener_.stored, ElementsAre(4));
    read(0, {4});
    EXPECT_THAT(listener_.stored, IsEmpty());
    EXPECT_EQ(figures_.hits, 1U);
    EXPECT_EQ(figures_.origin_requests, 2U);
}

TEST_F(NodeModelTest, ServesWhatNothingHasRoomFor) {
    make(0, 0);
    read(0, {1, 2});
    EXPECT_THAT(listener_.stored, IsEmpty());
    EXPECT_EQ(figures_.origin_requests, 2U);
}

TEST_F(NodeModelTest, LetsThePolicyMakeRoomButNotAmongWhatIsHeld) {
    policy_ = std::make_unique<sidecar::Lru>();
    make(2, 0);
    const Batch held = request(0, {1});
    read(0, {2});
    read(0, {3});
    EXPECT_THAT(listener_.stored, ElementsAre(1, 3));
    node_->consume(0, held, figures_, now_);
}

TEST_F(NodeModelTest, WhatWasForeseenIsFetchedOnceAndIsNoHit) {
    make(2, 0);
    foresee({1, 2, 3});
    EXPECT_EQ(figures_.origin_requests, 2U) << "there is no room for the third";
    read(0, {1, 2, 3});
    EXPECT_EQ(figures_.origin_requests, 3U);
    EXPECT_EQ(figures_.hits, 0U);
    node_->begin_epoch({0, 1, true}, now_);
    read(0, {1});
    EXPECT_EQ(figures_.hits, 1U);
}

TEST_F(NodeModelTest, NothingThatIsForeseenGoesToMakeRoom) {
    policy_ = std::make_unique<sidecar::Lru>();
    make(2, 1);
    foresee({1, 2, 3});
    EXPECT_THAT(listener_.stored, ElementsAre(1, 2, 3)) << "the window has the third";
    read(0, {1, 2, 3});
    EXPECT_EQ(figures_.origin_requests, 3U);
    foresee({1, 4});
    EXPECT_THAT(listener_.stored, ElementsAre(1, 4)) << "a hit to come counts as much";
}

TEST_F(NodeModelTest, FetchesAheadUntilTheWindowIsFull) {
    make(1, 2);
    foresee({5, 1, 2, 3, 4});
    EXPECT_THAT(listener_.stored, ElementsAre(5, 1, 2));
    read(0, {5});
    foresee({1, 2, 3, 4});
    EXPECT_THAT(listener_.stored, ElementsAre(5, 1, 2)) << "two wait there to be read";
    read(0, {1});
    foresee({2, 3, 4});
    EXPECT_THAT(listener_.stored, ElementsAre(5, 2, 3));
    read(0, {2, 3, 4});
    EXPECT_EQ(figures_.origin_requests, 5U);
}

TEST_F(NodeModelTest, WhatIsForeseenNoMoreLeavesTheWindow) {
    make(0, 4);
    read(0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    node_->begin_epoch({0, 1, false}, now_);
    foresee({1, 2, 3});
    foresee({1, 4, 3});
    EXPECT_THAT(listener_.stored, UnorderedElementsAre(1, 3, 4));
    node_->begin_epoch({0, 2, false}, now_);
    EXPECT_THAT(listener_.stored, IsEmpty());
}

TEST_F(NodeModelTest, ABatchIsReadyWhenItsLastSampleIs) {
    make(2, 0);
    request(0, {1, 2});
    const auto answers = node_->take_answers();
    ASSERT_EQ(answers.size(), 1U);
    OriginLink link{OriginSpec{}};
    link.transfer(now_, Bytes{100});
    EXPECT_EQ(answers[0].at, link.transfer(now_, Bytes{100}));
}

}  // namespace
}  // namespace stoker::simulate
