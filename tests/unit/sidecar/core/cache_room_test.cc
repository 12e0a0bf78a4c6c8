#include "sidecar/core/cache_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "tests/support/dataset.h"

namespace stoker::sidecar {
namespace {

using domain::SegmentClass;
using testing::ElementsAre;
using Verdict = CacheRoom::Verdict;

constexpr TimePoint kNow{std::chrono::seconds{100}};
const Bytes kRecord{domain::record_bytes(1000)};

// Ten equal samples; a grant and a window of two records each.
class CacheRoomTest : public testing::Test {
protected:
    void store(SampleIndex sample, SegmentClass segment_class) {
        table.start(sample, segment_class);
        table.finish(sample);
    }

    Verdict judge(SampleIndex sample) { return room.judge(sample, kNow, kOwnParty); }

    test::Dataset dataset{std::vector<std::uint64_t>(10, 1000)};
    EngineLimits limits{.window = kRecord * 2};
    SampleTable table{dataset.manifest()};
    StreamSet streams;
    DemandBook book;
    FetchAdmission admission{limits};
    PartyShares shares{limits, table, book};
    EngineCounters counters;
    CacheRoom room{
        limits, {kRecord * 2, std::nullopt}, admission, shares, table, streams, counters};
};

TEST_F(CacheRoomTest, FillsTheGrantThenTheWindow) {
    EXPECT_EQ(judge(0), Verdict::kResident);
    store(0, SegmentClass::kResident);
    store(1, SegmentClass::kResident);
    EXPECT_EQ(judge(2), Verdict::kWindow);
    store(2, SegmentClass::kWindow);
    store(3, SegmentClass::kWindow);
    EXPECT_EQ(judge(4), Verdict::kFull);
}

TEST_F(CacheRoomTest, StoresNothingDuringABypass) {
    room.set_aside(true);
    EXPECT_EQ(judge(0), Verdict::kShut);
    room.set_aside(false);
    EXPECT_EQ(judge(0), Verdict::kResident);
}

TEST_F(CacheRoomTest, ShrunkenGrantDropsUnheldResidents) {
    store(0, SegmentClass::kResident);
    store(1, SegmentClass::kResident);
    table.at(0).holds = 1;
    room.set_grant({Bytes::zero(), std::nullopt});
    EXPECT_THAT(room.take_drops(), ElementsAre(1));
    table.at(0).holds = 0;
    room.reconsider(0);
    EXPECT_THAT(room.take_drops(), ElementsAre(0));
    EXPECT_EQ(counters.dropped_resident_samples, 2U);
}

TEST_F(CacheRoomTest, EvictsAnUnneededWindowSample) {
    store(2, SegmentClass::kWindow);
    store(3, SegmentClass::kWindow);
    table.at(2).needs = 1;
    table.at(3).needs = 1;
    room.reconsider(2);
    room.set_grant({Bytes::zero(), std::nullopt});
    EXPECT_EQ(room.make_room(4, kNow, false, kOwnParty), Verdict::kWindow);
    EXPECT_THAT(room.take_drops(), ElementsAre(2));
    EXPECT_EQ(counters.evicted_window_samples, 1U);
}

TEST_F(CacheRoomTest, DoesNotPrefetchSamplesThatFailedTooOften) {
    EXPECT_TRUE(room.wants(0, kNow));
    table.at(0).failures = 3;
    EXPECT_FALSE(room.wants(0, kNow));
}

}  // namespace
}  // namespace stoker::sidecar
