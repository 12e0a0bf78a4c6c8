#include "sidecar/store/segment_table.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using domain::SegmentClass;
using domain::SegmentSeq;

SegmentInfo of_bytes(
    std::uint64_t file_bytes, SegmentClass segment_class = SegmentClass::kResident) {
    SegmentInfo info;
    info.segment_class = segment_class;
    info.file_bytes = file_bytes;
    return info;
}

TEST(SegmentTable, CountsLiveBytesBySegmentClass) {
    SegmentTable table;
    table.add(SegmentSeq{1}, of_bytes(1000));
    table.add(SegmentSeq{2}, of_bytes(500, SegmentClass::kWindow));
    table.add_live(SegmentSeq{1}, 128);
    table.add_live(SegmentSeq{1}, 64);
    table.add_live(SegmentSeq{2}, 256);
    table.remove_live(SegmentSeq{1}, 128);
    EXPECT_EQ(table.usage(SegmentClass::kResident).live_bytes, 64U);
    EXPECT_EQ(table.usage(SegmentClass::kResident).live_samples, 1U);
    EXPECT_EQ(table.usage(SegmentClass::kWindow).live_bytes, 256U);
    EXPECT_EQ(table.file_bytes(), 1500U);
}

TEST(SegmentTable, FollowsGrowingAndRemovedFiles) {
    SegmentTable table;
    table.add(SegmentSeq{1}, of_bytes(64));
    table.add(SegmentSeq{2}, of_bytes(64));
    table.set_file_bytes(SegmentSeq{1}, 1000);
    EXPECT_EQ(table.file_bytes(), 1064U);
    table.erase(SegmentSeq{1});
    EXPECT_EQ(table.file_bytes(), 64U);
    EXPECT_EQ(table.find(SegmentSeq{1}), nullptr);
    table.set_file_bytes(SegmentSeq{1}, 5000);
    EXPECT_EQ(table.file_bytes(), 64U);
}

TEST(SegmentTable, TheEmptiestSegmentIsCompleteAndLessThanHalfLive) {
    SegmentTable table;
    for (const std::uint32_t seq : {1U, 2U, 3U, 4U}) {
        SegmentInfo info = of_bytes(1000);
        info.growing = seq == 1;
        table.add(SegmentSeq{seq}, info);
    }
    table.add_live(SegmentSeq{1}, 64);
    table.add_live(SegmentSeq{2}, 499);
    table.add_live(SegmentSeq{3}, 300);
    table.add_live(SegmentSeq{4}, 500);
    EXPECT_EQ(table.emptiest(), SegmentSeq{3});
    table.add_live(SegmentSeq{3}, 300);
    EXPECT_EQ(table.emptiest(), SegmentSeq{2});
    table.add_live(SegmentSeq{2}, 1);
    EXPECT_EQ(table.emptiest(), std::nullopt);
    table.set_full_grown(SegmentSeq{1});
    EXPECT_EQ(table.emptiest(), SegmentSeq{1});
}

TEST(SegmentTable, TrustsSyncedAndUndamagedSegments) {
    SegmentTable table;
    for (const std::uint32_t seq : {3U, 1U, 2U}) {
        table.add(SegmentSeq{seq}, of_bytes(1000));
    }
    EXPECT_EQ(table.oldest_unsynced(), SegmentSeq{1});
    table.set_synced(SegmentSeq{1});
    table.set_synced(SegmentSeq{3});
    EXPECT_EQ(table.oldest_unsynced(), SegmentSeq{2});
    EXPECT_EQ(table.trusted(), (std::vector<std::uint32_t>{1, 3}));
    table.set_damaged(SegmentSeq{3});
    EXPECT_EQ(table.trusted(), (std::vector<std::uint32_t>{1}));
}

using SegmentTableDeathTest = ::testing::Test;

TEST(SegmentTableDeathTest, MoreDeadThanLiveBytesAreABug) {
    SegmentTable table;
    table.add(SegmentSeq{1}, of_bytes(1000));
    table.add_live(SegmentSeq{1}, 64);
    EXPECT_DEATH(table.remove_live(SegmentSeq{1}, 65), "fewer live records");
    EXPECT_DEATH(table.erase(SegmentSeq{1}), "live records");
}

}  // namespace
}  // namespace stoker::sidecar
