#include "sidecar/core/party_shares.h"

#include <gtest/gtest.h>

#include "tests/support/dataset.h"

namespace stoker::sidecar {
namespace {

using domain::SegmentClass;

constexpr Party kGuest{1};
constexpr TimePoint kNow{std::chrono::seconds{100}};

class PartySharesTest : public testing::Test {
protected:
    PartySharesTest() { book.connect(ConnectionId{1}, kGuest); }

    void connect_owner() { book.connect(ConnectionId{2}); }

    // The parties of `count` consecutive turns.
    std::vector<Party> turns(int count) {
        std::vector<Party> taken;
        for (int i = 0; i < count; ++i) {
            auto open = book.parties();
            taken.push_back(*shares.next(open));
            shares.on_turn(taken.back());
        }
        return taken;
    }

    test::Dataset dataset{std::vector<std::uint64_t>(10, 1000)};
    EngineLimits limits{.window = kib(8), .max_in_flight = 2};
    SampleTable table{dataset.manifest()};
    DemandBook book;
    PartyShares shares{limits, table, book};
};

TEST_F(PartySharesTest, GuestGetsOneOfElevenFetches) {
    connect_owner();
    const auto taken = turns(110);
    EXPECT_EQ(std::ranges::count(taken, kGuest), 10);
}

TEST_F(PartySharesTest, GuestsFetchesTakeNoneOfTheOwnersSlots) {
    connect_owner();
    table.start(0, SegmentClass::kWindow, kGuest);
    table.start(1, SegmentClass::kWindow, kGuest);
    EXPECT_TRUE(shares.has_slot(kOwnParty, 2));
    EXPECT_FALSE(shares.has_slot(kGuest, 2));
}

TEST_F(PartySharesTest, FetchesOfChunksAndForPeersUseNoneOfTheGuestsSlots) {
    connect_owner();
    table.start(0, SegmentClass::kWindow);
    for (const SampleIndex sample : {1U, 2U, 3U}) {
        table.start(sample, SegmentClass::kWindow, kOwnParty, {.slotless = true});
    }
    for (const SampleIndex sample : {4U, 5U}) {
        table.start(sample, SegmentClass::kWindow, kPeerParty);
    }
    EXPECT_TRUE(shares.has_slot(kOwnParty, 2));
    EXPECT_FALSE(shares.has_slot(kPeerParty, 2));
    EXPECT_TRUE(shares.has_slot(kGuest, 2));
    table.finish(0);
    table.finish(1);
    EXPECT_EQ(table.slots_of(kOwnParty), 0U);
    EXPECT_EQ(table.in_flight_of(kOwnParty), 2U);
}

TEST_F(PartySharesTest, GuestHasHalfTheWindowOrThreeQuartersWhileTheOwnerDoesNotRead) {
    table.start(0, SegmentClass::kWindow, kGuest);
    EXPECT_FALSE(shares.is_beyond(kib(4), kGuest));
    connect_owner();
    EXPECT_TRUE(shares.is_beyond(kib(4), kGuest));
    EXPECT_FALSE(shares.is_over(kGuest));
}

TEST_F(PartySharesTest, LimitsVerificationsOfGuestsOnly) {
    int allowed = 0;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(shares.may_verify(kOwnParty, kNow));
        allowed += shares.may_verify(kGuest, kNow) ? 1 : 0;
    }
    EXPECT_EQ(allowed, 64);
    EXPECT_TRUE(shares.may_verify(kGuest, kNow + std::chrono::seconds{1}));
}

}  // namespace
}  // namespace stoker::sidecar
