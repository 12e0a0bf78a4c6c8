#include "operator/core/allocation/reclaim_book.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::seconds;

TimePoint at(int second) {
    return TimePoint{seconds{second}};
}

Reclaim reclaim(Bytes resident, Bytes granted) {
    return {"nvme", "n1", "d", resident, granted, 30};
}

TEST(ReclaimBook, ReportsANewReclaimOnce) {
    ReclaimBook book;
    book.watch({reclaim(gib(5), gib(2))}, at(0));
    EXPECT_EQ(book.begun().size(), 1U);
    book.watch({reclaim(gib(4), gib(2))}, at(5));
    EXPECT_TRUE(book.begun().empty());
    EXPECT_TRUE(book.late().empty());
}

TEST(ReclaimBook, ReportsASmallReclaimOnlyWhenItIsLate) {
    ReclaimBook book;
    book.watch({reclaim(mib(100), mib(95))}, at(0));
    EXPECT_TRUE(book.begun().empty());
    book.watch({reclaim(mib(100), mib(95))}, at(31));
    EXPECT_EQ(book.became_late().size(), 1U);
    book.watch({reclaim(mib(100), mib(94))}, at(32));
    EXPECT_EQ(book.begun().size(), 1U);
}

TEST(ReclaimBook, ReportsALateReclaimOnce) {
    ReclaimBook book;
    book.watch({reclaim(gib(5), gib(2))}, at(0));
    book.watch({reclaim(gib(5), gib(2))}, at(30));
    EXPECT_TRUE(book.late().empty());
    book.watch({reclaim(gib(5), gib(2))}, at(31));
    EXPECT_EQ(book.became_late().size(), 1U);
    EXPECT_EQ(book.late().size(), 1U);
    book.watch({reclaim(gib(5), gib(2))}, at(40));
    EXPECT_TRUE(book.became_late().empty());
    EXPECT_EQ(book.late().size(), 1U);
    book.watch({}, at(41));
    EXPECT_TRUE(book.late().empty());
}

TEST(ReclaimBook, FurtherCutOfAGrantRestartsItsGracePeriod) {
    ReclaimBook book;
    book.watch({reclaim(gib(5), gib(2))}, at(0));
    book.watch({reclaim(gib(5), gib(1))}, at(29));
    EXPECT_EQ(book.begun().size(), 1U);
    book.watch({reclaim(gib(5), gib(1))}, at(58));
    EXPECT_TRUE(book.late().empty());
    // A larger grant changes no deadline while the sidecar must still return bytes.
    book.watch({reclaim(gib(5), gib(3))}, at(60));
    EXPECT_EQ(book.late().size(), 1U);
}

TEST(ReclaimBook, GracePeriodHasAMinimum) {
    ReclaimBook book;
    Reclaim at_once = reclaim(gib(5), gib(2));
    at_once.grace_seconds = 0;
    book.watch({at_once}, at(0));
    book.watch({at_once}, at(9));
    EXPECT_TRUE(book.late().empty());
    book.watch({at_once}, at(11));
    EXPECT_EQ(book.late().size(), 1U);
}

}  // namespace
}  // namespace stoker::control
