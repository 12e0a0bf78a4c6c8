#include "common/domain/segment_format.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

constexpr SegmentSeq kSeq{7};

TEST(SegmentFormat, HeaderRoundTrips) {
    const SegmentHeader header{kSeq, RevisionId{0x1234}, SegmentClass::kWindow, 64U << 20U};
    EXPECT_EQ(decode_segment_header(encode_segment_header(header)).value(), header);
}

TEST(SegmentFormat, RejectsEveryFlippedHeaderBit) {
    const auto good = encode_segment_header({kSeq, RevisionId{1}, SegmentClass::kResident, 4096});
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        auto bad = good;
        bad.at(bit / 8) ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_FALSE(decode_segment_header(bad).has_value()) << "bit " << bit;
    }
}

TEST(SegmentFormat, ErrorNamesTheOtherVersion) {
    auto header = encode_segment_header({kSeq, RevisionId{1}, SegmentClass::kResident, 4096});
    header.at(8) = std::byte{2};
    const auto result = decode_segment_header(header);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().message, "segment format version 2, this program reads version 1");
}

TEST(SegmentFormat, RecordHeaderIsValidInItsOwnSegmentOnly) {
    const RecordHeader header{SampleId{42}, kSeq, 110 * 1024, 0xCAFE};
    const auto bytes = encode_record_header(header);
    EXPECT_EQ(decode_record_header(bytes, kSeq), header);
    EXPECT_EQ(decode_record_header(bytes, SegmentSeq{8}), std::nullopt);
}

TEST(SegmentFormat, ZerosAreNotARecord) {
    EXPECT_EQ(decode_record_header(std::array<std::byte, 64>{}, SegmentSeq{0}), std::nullopt);
}

TEST(SegmentFormat, RecordsAreAlignedAndIncludeTheirHeader) {
    EXPECT_EQ(record_bytes(0), 64U);
    EXPECT_EQ(record_bytes(1), 128U);
    EXPECT_EQ(record_bytes(64), 128U);
    EXPECT_EQ(record_bytes(65), 192U);
}

TEST(SegmentFormat, RecordsOfADatasetTakeAtMostRecordsBytesMax) {
    for (const std::uint64_t size : {0U, 1U, 63U, 64U, 65U, 1000U}) {
        const Bytes bound = records_bytes_max(Bytes{size} * 7, 7);
        EXPECT_LE(Bytes{record_bytes(size)} * 7, bound);
    }
    EXPECT_EQ(records_bytes_max(Bytes{1}, 1), Bytes{record_bytes(1)}) << "and some take all of it";
}

std::vector<FooterEntry> entries(std::size_t count) {
    std::vector<FooterEntry> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back({SampleId{i * 3}, 64 + i * 128, i});
    }
    return out;
}

TEST(SegmentFormat, FooterRoundTripsAtEverySmallLength) {
    for (std::size_t count = 0; count < 20; ++count) {
        const auto footer = encode_footer(entries(count), kSeq);
        EXPECT_EQ(footer.size() % kRecordAlignment, 0U);
        const std::span<const std::byte> tail =
            std::span{footer}.last(std::min(footer.size(), kFooterTailBytes));
        ASSERT_EQ(footer_bytes(tail), footer.size());
        EXPECT_EQ(decode_footer(footer, kSeq).value(), entries(count));
    }
}

TEST(SegmentFormat, RejectsEveryFlippedFooterBit) {
    const auto good = encode_footer(entries(5), kSeq);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        auto bad = good;
        bad.at(bit / 8) ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_FALSE(decode_footer(bad, kSeq).has_value()) << "bit " << bit;
    }
}

TEST(SegmentFormat, RejectsFooterOfAnotherSegment) {
    EXPECT_FALSE(decode_footer(encode_footer(entries(2), kSeq), SegmentSeq{8}).has_value());
}

}  // namespace
}  // namespace stoker::domain
