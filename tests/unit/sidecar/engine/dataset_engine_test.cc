#include "sidecar/engine/dataset_engine.h"

#include <gmock/gmock.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/replicate_eviction.h"

namespace stoker::sidecar {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::uint64_t kSamples = 40;
constexpr Bytes kRecord{domain::record_bytes(100)};
constexpr ConnectionId kConnection{1};
constexpr StreamId kStream{1};

EngineLimits limits() {
    EngineLimits limits;
    limits.window = Bytes{10 * kRecord.count()};
    return limits;
}

class DatasetEngineTest : public testing::Test {
protected:
    explicit DatasetEngineTest(std::unique_ptr<EvictionPolicy> eviction = nullptr)
        : engine(
              SampleSizes{sizes}, limits(), {Bytes{4 * kRecord.count()}, {}}, std::move(eviction)) {
        engine.fetch().on_connect(kConnection, kStream);
    }

    Effects begin(const std::string& contract, std::uint64_t epoch = 0) {
        local::Begin begin;
        begin.contract = contract;
        begin.job = "job";
        begin.epoch = epoch;
        begin.batch = 5;
        Effects effects;
        EXPECT_TRUE(engine.begin({kConnection, kStream}, begin, {}, now, effects).has_value());
        return effects;
    }

    std::vector<std::uint64_t> sizes = std::vector<std::uint64_t>(kSamples, 100);
    TimePoint now{};
    DatasetEngine engine;
};

TEST_F(DatasetEngineTest, FetchesForeseenSamples) {
    EXPECT_THAT(begin("windowed").fetches, Not(IsEmpty()));
}

// Ten chunks of four samples. The grant has room for four samples, the window for ten.
TEST_F(DatasetEngineTest, FetchesTheGroupsOfAPackedDatasetChunkByChunk) {
    std::vector<std::uint32_t> chunk_of;
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        chunk_of.push_back(sample % 10);
    }
    EngineLimits one_at_a_time = limits();
    one_at_a_time.max_in_flight = 1;
    const SampleSizes all{sizes};
    DatasetEngine packed{
        all, one_at_a_time, {Bytes{4 * kRecord.count()}, {}}, nullptr, SampleChunks{chunk_of, all}};
    packed.fetch().on_connect(kConnection, kStream);
    local::Begin wanted;
    wanted.contract = "windowed";
    wanted.job = "job";
    wanted.batch = 4;
    wanted.parameters = {{"chunkGroup", 2}};
    Effects effects;
    ASSERT_TRUE(packed.begin({kConnection, kStream}, wanted, {}, now, effects).has_value());
    for (int chunk = 0; chunk < 3; ++chunk) {
        const auto fetches = std::exchange(effects.fetches, {});
        ASSERT_THAT(fetches, SizeIs(4)) << "a whole chunk in one slot";
        for (const StartFetch& fetch : fetches) {
            EXPECT_EQ(chunk_of[fetch.sample], chunk_of[fetches[0].sample]);
            std::ranges::copy(
                packed.fetch().on_stored(fetch.sample, now).fetches,
                std::back_inserter(effects.fetches));
        }
    }
}

TEST_F(DatasetEngineTest, RejectedBeginHasNoEffect) {
    Effects effects;
    local::Begin begin;
    begin.contract = "fast";
    EXPECT_FALSE(engine.begin({kConnection, kStream}, begin, {}, now, effects).has_value());
    EXPECT_EQ(effects.fetches.size(), 0U);
}

// A draw says whether the sample was on the node, or else that this draw caused the fetch.
TEST_F(DatasetEngineTest, ReportsStoredAndDroppedSamplesToSamplers) {
    engine.adopt(7, domain::SegmentClass::kResident);
    begin("replicate");
    Effects effects;
    const auto drawn = engine.draw(kConnection, kStream, {0, kSamples}, now, effects);
    ASSERT_TRUE(drawn.has_value());
    for (std::size_t i = 0; i < drawn->served.size(); ++i) {
        EXPECT_EQ((drawn->kinds[i] & local::kKindOnNode) != 0, drawn->served[i] == 7);
    }
    effects = engine.fetch().on_grant({Bytes{}, {}}, now);
    EXPECT_THAT(effects.drops, testing::Contains(7));
    begin("replicate", 1);
    const auto again = engine.draw(kConnection, kStream, {1, kSamples}, now, effects);
    ASSERT_TRUE(again.has_value());
    const auto at = std::ranges::find(again->served, 7U) - again->served.begin();
    ASSERT_LT(at, std::ssize(again->served));
    EXPECT_EQ(again->kinds[static_cast<std::size_t>(at)] & local::kKindOnNode, 0);
}

TEST_F(DatasetEngineTest, KeepsWindowSamplesThatAnotherWindowedJobNeeds) {
    begin("windowed");
    engine.fetch().on_connect(ConnectionId{2}, StreamId{2});
    local::Begin other;
    other.contract = "windowed";
    other.job = "other";
    Effects effects;
    ASSERT_TRUE(engine.begin({ConnectionId{2}, StreamId{2}}, other, {}, now, effects).has_value());
    std::optional<SampleIndex> passing;
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        if (engine.fetch().sample(sample).state == SampleState::kFetching) {
            engine.fetch().on_stored(sample, now);
            if (engine.fetch().sample(sample).segment_class == domain::SegmentClass::kWindow) {
                passing = sample;
            }
        }
    }
    ASSERT_TRUE(passing.has_value());
    const auto drawn = engine.draw(kConnection, kStream, {0, kSamples}, now, effects);
    ASSERT_TRUE(drawn.has_value());
    ReadCounts counts;
    effects = engine.on_consumed(kConnection, kStream, 0, {*passing}, now, counts);
    EXPECT_THAT(effects.drops, IsEmpty());
    EXPECT_EQ(counts.fetched_samples, 1U);
}

// A client that draws may also send a plan of its own, even one as long as the engine's.
TEST_F(DatasetEngineTest, DrawsReplaceAClientsOwnPlan) {
    using Case = std::pair<std::uint64_t, std::uint64_t>;  // epoch and samples of the next one
    for (const auto& [epoch, ahead] : {Case{0, 1}, Case{1, 0}, Case{1, 1}}) {
        begin("windowed");
        const std::uint32_t size = engine.fetch().plan_size(kConnection, 0);
        ASSERT_GT(size, 1U);
        auto own = StreamPlan::make(epoch, std::vector<SampleIndex>(size, 3), 0, kSamples, ahead);
        ASSERT_TRUE(own.has_value());
        engine.fetch().on_plan(kConnection, *std::move(own), now);
        Effects effects;
        const auto drawn = engine.draw(kConnection, kStream, {0, kSamples}, now, effects);
        ASSERT_TRUE(drawn.has_value());
        EXPECT_EQ(engine.fetch().plan_size(kConnection, 0), drawn->served.size());
    }
}

TEST_F(DatasetEngineTest, EvictsByTheJobsImportance) {
    const EvictionPolicy* before = &engine.fetch().eviction();
    begin("importance");
    EXPECT_NE(&engine.fetch().eviction(), before);
}

TEST_F(DatasetEngineTest, EvictsForTheReplicatingJobOnlyWhileItReadsAlone) {
    begin("replicate");
    EXPECT_NE(dynamic_cast<const ReplicateEviction*>(&engine.fetch().eviction()), nullptr);
    engine.fetch().on_connect(ConnectionId{2}, StreamId{2});
    auto plan = StreamPlan::make(0, {0, 1, 2}, 0, kSamples);
    ASSERT_TRUE(plan.has_value());
    engine.fetch().on_plan(ConnectionId{2}, *std::move(plan), now);
    begin("replicate", 1);
    EXPECT_NE(dynamic_cast<const ImportanceEviction*>(&engine.fetch().eviction()), nullptr)
        << "a job under contract exact reads, too";
    engine.fetch().on_disconnect(ConnectionId{2}, now);
    begin("replicate", 2);
    EXPECT_NE(dynamic_cast<const ReplicateEviction*>(&engine.fetch().eviction()), nullptr);
}

// The old connection's end is noticed after the rank has begun on the new one.
TEST_F(DatasetEngineTest, ReconnectingRankKeepsItsPolicy) {
    begin("replicate");
    const EvictionPolicy* before = &engine.fetch().eviction();
    engine.fetch().on_connect(ConnectionId{2}, StreamId{2});
    local::Begin frame;
    frame.contract = "replicate";
    frame.job = "job";
    frame.epoch = 1;
    frame.batch = 5;
    Effects effects;
    ASSERT_TRUE(engine.begin({ConnectionId{2}, StreamId{2}}, frame, {}, now, effects).has_value());
    EXPECT_EQ(&engine.fetch().eviction(), before);
}

class WithLru : public DatasetEngineTest {
protected:
    WithLru()
        : DatasetEngineTest(std::make_unique<Lru>()) {}
};

TEST_F(WithLru, KeepsAGivenPolicy) {
    const EvictionPolicy* before = &engine.fetch().eviction();
    begin("importance");
    EXPECT_EQ(&engine.fetch().eviction(), before);
}

}  // namespace
}  // namespace stoker::sidecar
