#include "sidecar/store/segment_writer.h"

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "sidecar/store/segment_scan.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::FooterEntry;
using domain::SampleId;
using test::FaultDevice;

class SegmentWriterTest : public ::testing::Test {
protected:
    static constexpr domain::SegmentSeq kSeq{5};

    std::unique_ptr<SegmentWriter> create(std::uint64_t capacity_bytes = 8192) {
        return SegmentWriter::create(
                   device_,
                   "/node",
                   {kSeq,
                    dataset_.manifest().revision(),
                    domain::SegmentClass::kResident,
                    capacity_bytes})
            .value();
    }

    std::uint64_t reserve(SegmentWriter& writer, std::uint64_t id) {
        return writer.reserve(SampleId{id}, dataset_.manifest().size_bytes(SampleId{id}));
    }

    Status write(SegmentWriter& writer, std::uint64_t offset, std::uint64_t id) {
        const auto payload = dataset_.payload(SampleId{id});
        return writer.write(offset, SampleId{id}, payload, crc32c(payload));
    }

    SegmentContents scan() {
        const auto file = device_.open("/node/segments/5.seg").value();
        return scan_segment(*file, kSeq, dataset_.manifest(), Trust::kChecksums).value();
    }

    static std::vector<std::uint64_t> ids(const std::vector<FooterEntry>& entries) {
        std::vector<std::uint64_t> out;
        for (const FooterEntry& entry : entries) {
            out.push_back(entry.sample.value());
        }
        return out;
    }

    using Ids = std::vector<std::uint64_t>;

    FaultDevice device_{1};
    test::Dataset dataset_{std::vector<std::uint64_t>(20, 500)};
};

TEST_F(SegmentWriterTest, CommitsInTheOrderOfOffsets) {
    const auto writer = create();
    const auto a = reserve(*writer, 1);
    const auto b = reserve(*writer, 2);
    const auto c = reserve(*writer, 3);
    for (const auto& [offset, id] : {std::pair{b, 2U}, std::pair{c, 3U}, std::pair{a, 1U}}) {
        ASSERT_TRUE(write(*writer, offset, id).has_value());
    }
    EXPECT_TRUE(writer->complete(b, true).empty());
    EXPECT_FALSE(writer->is_committed(b));
    EXPECT_EQ(ids(writer->complete(a, true)), (Ids{1, 2}));
    EXPECT_TRUE(writer->is_committed(b));
    EXPECT_FALSE(writer->is_idle());
    EXPECT_EQ(ids(writer->complete(c, true)), (Ids{3}));
    EXPECT_TRUE(writer->is_idle());
    EXPECT_EQ(ids(scan().records), (Ids{1, 2, 3}));
}

TEST_F(SegmentWriterTest, AFailedWriteFailsLaterRecords) {
    const auto writer = create();
    const auto a = reserve(*writer, 1);
    const auto b = reserve(*writer, 2);
    const auto c = reserve(*writer, 3);
    ASSERT_TRUE(write(*writer, a, 1).has_value() && write(*writer, c, 3).has_value());
    EXPECT_TRUE(writer->complete(c, true).empty());
    EXPECT_TRUE(writer->complete(b, false).empty());
    EXPECT_TRUE(writer->is_broken());
    EXPECT_TRUE(writer->is_failed(c));
    EXPECT_FALSE(writer->is_failed(a));
    EXPECT_FALSE(writer->fits(1));
    EXPECT_EQ(ids(writer->complete(a, true)), (Ids{1}));
    EXPECT_TRUE(writer->is_idle());
    ASSERT_TRUE(writer->seal().has_value());
    EXPECT_EQ(ids(scan().records), (Ids{1}));
    EXPECT_TRUE(scan().sealed);
}

TEST_F(SegmentWriterTest, SealedSegmentsStayWithinTheirCapacity) {
    const auto writer = create(4096);
    std::size_t count = 0;
    while (writer->fits(500)) {
        const auto offset = reserve(*writer, count);
        ASSERT_TRUE(write(*writer, offset, count).has_value());
        writer->complete(offset, true);
        ++count;
    }
    ASSERT_TRUE(writer->seal().has_value());
    EXPECT_EQ(count, 6U);
    const auto size = device_.content("/node/segments/5.seg")->size();
    EXPECT_LE(size, 4096U);
    EXPECT_EQ(size, writer->file_bytes());
    EXPECT_EQ(scan().records.size(), 6U);
}

TEST_F(SegmentWriterTest, CapacityForOneSampleHasRoomForExactlyThatSample) {
    const auto writer = create(SegmentWriter::capacity_for(500));
    ASSERT_TRUE(writer->fits(500));
    const auto offset = reserve(*writer, 0);
    ASSERT_TRUE(write(*writer, offset, 0).has_value());
    writer->complete(offset, true);
    EXPECT_FALSE(writer->fits(0));
    ASSERT_TRUE(writer->seal().has_value());
    EXPECT_EQ(writer->file_bytes(), SegmentWriter::capacity_for(500));
}

TEST_F(SegmentWriterTest, DoesNotReuseANumber) {
    const auto writer = create();
    const auto again = SegmentWriter::create(device_, "/node", writer->header());
    EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(SegmentWriterTest, LeavesNothingWhenTheHeaderDoesNotFit) {
    device_.set_capacity(Bytes{10});
    const auto writer = SegmentWriter::create(
        device_, "/node", {kSeq, domain::RevisionId{1}, domain::SegmentClass::kResident, 4096});
    EXPECT_EQ(writer.error().code, ErrorCode::kResourceExhausted);
    EXPECT_TRUE(device_.paths().empty());
}

TEST_F(SegmentWriterTest, IsValidWithoutAFooter) {
    const auto writer = create();
    const auto offset = reserve(*writer, 1);
    ASSERT_TRUE(write(*writer, offset, 1).has_value());
    writer->complete(offset, true);
    device_.set_broken(FaultDevice::Operation::kWrite, true);
    EXPECT_EQ(writer->seal().error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(scan().sealed);
    EXPECT_EQ(ids(scan().records), (Ids{1}));
}

}  // namespace
}  // namespace stoker::sidecar
