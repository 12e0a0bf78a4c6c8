#include "client/src/core/segment_map.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/unique_fd.h"
#include "tests/support/node_directory.h"
#include "tests/support/temp_folder.h"

namespace stoker::client {
namespace {

using domain::SampleId;
using domain::SegmentSeq;

class SegmentMapTest : public testing::Test {
protected:
    SegmentMapTest()
        : node_(folder_.path(), {{"a/1", 100, "e1"}, {"a/2", 5000, "e2"}}),
          segments_(::open((folder_.path() + "/segments").c_str(), O_RDONLY | O_DIRECTORY)) {}

    auto open(SegmentSeq seq) { return SegmentMap::open(segments_.get(), seq, node_.revision()); }

    test::TempFolder folder_;
    test::NodeDirectory node_;
    UniqueFd segments_;
};

std::vector<std::byte> payload(std::size_t size) {
    return std::vector<std::byte>(size, std::byte{7});
}

TEST_F(SegmentMapTest, ReadsARecordAppendedAfterMapping) {
    const auto seq = node_.start_segment(1 << 20);
    node_.put(SampleId{0}, payload(100));
    const auto map = open(seq).value();
    const auto where = node_.put(SampleId{1}, payload(5000));
    const auto record = map->slice(segments_.get(), where.record_offset, 5064);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->back(), std::byte{7});
}

TEST_F(SegmentMapTest, RefusesBytesBeyondTheEndOfTheFile) {
    const auto seq = node_.start_segment(1 << 20);
    const auto map = open(seq).value();
    EXPECT_FALSE(map->slice(segments_.get(), 64, 100).has_value());
    EXPECT_FALSE(map->slice(segments_.get(), 1 << 20, 1).has_value());
    EXPECT_FALSE(map->slice(segments_.get(), UINT64_MAX - 10, 100).has_value());
}

TEST_F(SegmentMapTest, AnUnlinkedSegmentIsNotFoundButItsMapStaysReadable) {
    const auto seq = node_.start_segment(1 << 20);
    const auto where = node_.put(SampleId{0}, payload(100));
    const auto map = open(seq).value();
    EXPECT_TRUE(map->is_linked(segments_.get()));
    node_.unlink_segment(seq);
    EXPECT_FALSE(map->is_linked(segments_.get()));
    EXPECT_EQ(open(seq).error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(map->slice(segments_.get(), where.record_offset, 164).has_value());
}

TEST_F(SegmentMapTest, RefusesAFileOfAnotherRevisionOrNumber) {
    const auto seq = node_.start_segment(1 << 20);
    EXPECT_EQ(
        SegmentMap::open(segments_.get(), seq, domain::RevisionId{1}).error().code,
        ErrorCode::kCorruption);
    std::filesystem::rename(node_.segment_path(seq), node_.segment_path(SegmentSeq{9}));
    EXPECT_EQ(open(SegmentSeq{9}).error().code, ErrorCode::kCorruption);
}

TEST_F(SegmentMapTest, RefusesAFileThatIsNotASegment) {
    std::ofstream{node_.segment_path(SegmentSeq{5})} << "short";
    EXPECT_EQ(open(SegmentSeq{5}).error().code, ErrorCode::kCorruption);
    std::ofstream{node_.segment_path(SegmentSeq{6})} << std::string(200, 'x');
    EXPECT_EQ(open(SegmentSeq{6}).error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace stoker::client
