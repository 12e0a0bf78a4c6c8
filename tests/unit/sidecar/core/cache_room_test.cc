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

TEST_F(CacheRoomTest, WindowBorrowsFromTheGrant) {
    store(0, SegmentClass::kResident);
    store(1, SegmentClass::kResident);
    room.set_window(kRecord * 3);
    shares.set_borrowed(room.borrowed());
    EXPECT_EQ(room.take_drops().size(), 1U) << "one resident makes room";
    EXPECT_EQ(room.window(), kRecord * 3);
    for (SampleIndex sample = 2; sample < 5; ++sample) {
        EXPECT_EQ(judge(sample), Verdict::kWindow);
        store(sample, SegmentClass::kWindow);
    }
    EXPECT_EQ(judge(5), Verdict::kFull);
    EXPECT_EQ(table.account().resident + table.account().window, kRecord * 4);
}

TEST_F(CacheRoomTest, WindowBorrowsNoMoreThanTheGrant) {
    room.set_window(kRecord * 100);
    EXPECT_EQ(room.borrowed(), kRecord * 2);
    EXPECT_EQ(judge(0), Verdict::kWindow) << "nothing of the grant is left";
}

TEST_F(CacheRoomTest, ResidentsComeBackAsTheWindowEmpties) {
    room.set_window(kRecord * 4);
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        store(sample, SegmentClass::kWindow);
    }
    room.set_window(Bytes::zero());
    EXPECT_EQ(judge(5), Verdict::kResident);
    store(5, SegmentClass::kResident);
    EXPECT_EQ(judge(6), Verdict::kFull) << "the window still has what it borrowed";
    table.remove(0);
    EXPECT_EQ(judge(6), Verdict::kResident);
}

TEST_F(CacheRoomTest, SmallerGrantTakesBackWhatTheWindowBorrowed) {
    room.set_window(kRecord * 4);
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        store(sample, SegmentClass::kWindow);
        table.at(sample).needs = 1;
        room.reconsider(sample);
    }
    room.set_grant({kRecord, std::nullopt});
    EXPECT_EQ(room.take_drops().size(), 1U);
    EXPECT_EQ(table.account().window, kRecord * 3);
}

TEST_F(CacheRoomTest, GuestsMayNotUseGrantBytesThatTheWindowBorrowed) {
    constexpr Party kGuest{1};
    limits.window = kRecord * 4;
    book.connect(ConnectionId{1}, kOwnParty);
    book.connect(ConnectionId{2}, kGuest);
    room.set_window(kRecord * 6);
    shares.set_borrowed(room.borrowed());
    table.start(0, SegmentClass::kWindow, kGuest);
    EXPECT_EQ(room.judge(1, kNow, kGuest), Verdict::kWindow);
    table.start(1, SegmentClass::kWindow, kGuest);
    EXPECT_EQ(room.judge(2, kNow, kGuest), Verdict::kFull) << "half of the standard window";
    for (SampleIndex sample = 2; sample < 6; ++sample) {
        EXPECT_EQ(judge(sample), Verdict::kWindow) << "the other half and all that it lent";
        store(sample, SegmentClass::kWindow);
    }
}

TEST_F(CacheRoomTest, StoresNothingDuringABypass) {
    room.set_aside(true);
    EXPECT_EQ(judge(0), Verdict::kShut);
    room.set_aside(false);
    EXPECT_EQ(judge(0), Verdict::kResident);
}

TEST_F(CacheRoomTest, SmallerGrantDropsResidentsThatNoClientHolds) {
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
