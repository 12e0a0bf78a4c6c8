#include "operator/core/allocation/rooms.h"

#include <utility>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using Amounts = std::vector<Bytes>;

// Two namespaces with a quota and a claim each, on one node of 100 bytes.
ClaimTable table_of(QuotaView first, QuotaView second) {
    ClaimTable table;
    PlannedNode node;
    node.capacity = Bytes{100};
    table.nodes = {node};
    table.claims.resize(2);
    table.claims[1].account = 1;
    table.accounts = {{std::move(first)}, {std::move(second)}};
    return table;
}

QuotaView quota(std::uint64_t nominal, Bytes borrowing, Bytes lending) {
    QuotaView result;
    result.nominal = Bytes{nominal};
    result.borrowing = borrowing;
    result.lending = lending;
    return result;
}

TEST(Rooms, UsesOwnRoomBeforeTheCommonRoom) {
    Rooms rooms{{Bytes{50}}, {Bytes{40}, Bytes{40}}, {Bytes{10}, Bytes{0}}, Bytes{20}};
    EXPECT_EQ(rooms.growth(0, 0, Bytes{99}), Bytes{30});
    rooms.take(0, 0, Bytes{15});
    EXPECT_EQ(rooms.nodes, (Amounts{Bytes{35}}));
    EXPECT_EQ(rooms.own, (Amounts{Bytes{0}, Bytes{0}}));
    EXPECT_EQ(rooms.common, Bytes{15});
    EXPECT_EQ(rooms.growth(0, 1, Bytes{99}), Bytes{15});
}

TEST(Rooms, BorrowersShareUnusedLentBytes) {
    const ClaimTable table = table_of(
        quota(60, Bytes::unlimited(), Bytes{20}), quota(20, Bytes{50}, Bytes::unlimited()));
    // The first namespace keeps 40 of the 100 bytes to itself; the second may have 70 in total.
    const Rooms empty = borrowing_rooms(table, {Bytes{0}, Bytes{0}});
    EXPECT_EQ(empty.growth(0, 1, Bytes{99}), Bytes{60});
    const Rooms used = borrowing_rooms(table, {Bytes{50}, Bytes{0}});
    EXPECT_EQ(used.growth(0, 1, Bytes{99}), Bytes{50});
    EXPECT_EQ(nominal_rooms(table, {Bytes{50}, Bytes{0}}).of_account(0), Bytes{10});
}

TEST(Rooms, BytesOutsideQuotasAreBorrowedFirst) {
    const ClaimTable table = table_of(
        quota(60, Bytes::unlimited(), Bytes{20}), quota(20, Bytes{50}, Bytes::unlimited()));
    EXPECT_EQ(lent_of(table, {Bytes{30}, Bytes{40}}), (Amounts{Bytes{0}, Bytes{0}}));
    EXPECT_EQ(lent_of(table, {Bytes{30}, Bytes{50}}), (Amounts{Bytes{10}, Bytes{0}}));
    EXPECT_EQ(overdraft_of(table, {Bytes{30}, Bytes{50}}), Bytes{0});
    EXPECT_EQ(overdraft_of(table, {Bytes{30}, Bytes{65}}), Bytes{5});
}

}  // namespace
}  // namespace stoker::control
