#include "sidecar/service/client_rooms.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr std::uint64_t kAll = 16U << 20U;  // limit of plans' positions, of all clients
constexpr std::uint64_t kPending = 1U << 20U;

Client client(
    std::uint64_t connection,
    std::uint64_t stream,
    std::uint64_t sidecar = 1,
    Party party = kOwnParty) {
    return {ConnectionId{connection}, StreamId{stream}, sidecar, party};
}

class ClientRoomsTest : public testing::Test {
protected:
    ClientRoomsTest() { rooms.set_sample_count(1000); }

    ClientRooms rooms;
};

TEST_F(ClientRoomsTest, PlansOfOneSidecarGetThreeQuartersOfTheRoom) {
    EXPECT_FALSE(rooms.take_plan(client(1, 1), kAll / 4 * 3 + 1));
    EXPECT_TRUE(rooms.take_plan(client(1, 1), kAll / 4 * 3));
    EXPECT_FALSE(rooms.take_plan(client(2, 2), 1));
    EXPECT_TRUE(rooms.take_plan(client(3, 3, 2), kAll / 4));
    EXPECT_FALSE(rooms.take_plan(client(4, 4, 2), 1)) << "all of them are taken";
}

TEST_F(ClientRoomsTest, ANewPlanOfAStreamReplacesTheOldOne) {
    ASSERT_TRUE(rooms.take_plan(client(1, 1), kAll / 2));
    EXPECT_FALSE(rooms.take_plan(client(1, 1), kAll));
    EXPECT_FALSE(rooms.take_plan(client(2, 2), kAll / 2)) << "the old one stays";
    EXPECT_TRUE(rooms.take_plan(client(1, 1), kAll / 4 * 3));
}

TEST_F(ClientRoomsTest, ReleasesAPlanWithTheLastConnectionOfItsStream) {
    ASSERT_TRUE(rooms.take_plan(client(1, 1), kAll / 4 * 3));
    rooms.leave(client(1, 1), false);
    EXPECT_FALSE(rooms.take_plan(client(3, 2), 1));
    rooms.leave(client(2, 1), true);
    EXPECT_TRUE(rooms.take_plan(client(3, 2), kAll / 4 * 3));
}

TEST_F(ClientRoomsTest, GuestsTakeNoRoomFromTheOwnParty) {
    EXPECT_FALSE(rooms.take_plan(client(1, 1, 1, Party{1}), kAll / 4 + 1));
    EXPECT_TRUE(rooms.take_plan(client(1, 1, 1, Party{1}), kAll / 4));
    EXPECT_TRUE(rooms.take_plan(client(2, 2, 2, Party{2}), kAll / 4));
    EXPECT_FALSE(rooms.take_plan(client(3, 3, 3, Party{3}), 1));
    EXPECT_TRUE(rooms.take_plan(client(4, 4), kAll / 4 * 3));
}

TEST_F(ClientRoomsTest, AGuestsPlanOfALargeDatasetFits) {
    rooms.set_sample_count(kAll);
    EXPECT_TRUE(rooms.take_plan(client(1, 1, 1, Party{1}), kAll));
}

TEST_F(ClientRoomsTest, LimitsTheStreamsOfOneGuest) {
    for (std::uint64_t stream = 1; stream <= ClientRooms::kGuestStreamsMax; ++stream) {
        ASSERT_TRUE(rooms.take_stream(client(stream, stream, 1, Party{1})));
    }
    EXPECT_TRUE(rooms.take_stream(client(1, 1, 1, Party{1}))) << "it has it already";
    EXPECT_FALSE(rooms.take_stream(client(100, 100, 1, Party{1})));
    EXPECT_TRUE(rooms.take_stream(client(100, 100, 2, Party{2})));
    EXPECT_TRUE(rooms.take_stream(client(101, 101)));
    rooms.leave(client(1, 1, 1, Party{1}), true);
    EXPECT_TRUE(rooms.take_stream(client(102, 102, 1, Party{1})));
}

TEST_F(ClientRoomsTest, LimitsTheSamplesOfUnansweredFetches) {
    EXPECT_TRUE(rooms.take_fetch(client(1, 1), kPending / 2));
    EXPECT_FALSE(rooms.take_fetch(client(2, 2), 1)) << "of the same sidecar";
    EXPECT_TRUE(rooms.take_fetch(client(3, 3, 2), 1));
    EXPECT_FALSE(rooms.take_fetch(client(4, 4, 3, Party{1}), kPending / 4 + 1));
    EXPECT_TRUE(rooms.take_fetch(client(4, 4, 3, Party{1}), kPending / 4));
    rooms.give_fetch(client(1, 1), 10);
    EXPECT_TRUE(rooms.take_fetch(client(2, 2), 10));
    EXPECT_FALSE(rooms.take_fetch(client(2, 2), 1));
    rooms.leave(client(1, 1), true);
    EXPECT_TRUE(rooms.take_fetch(client(2, 2), kPending / 2 - 10)) << "what it still waited for";
}

}  // namespace
}  // namespace stoker::sidecar
