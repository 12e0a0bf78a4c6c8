#include "sidecar/store/segment_scan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::FooterEntry;
using domain::SampleId;

constexpr domain::SegmentSeq kSeq{5};

// Builds a segment file by hand, with any mistake.
class SegmentBuilder {
public:
    explicit SegmentBuilder(const test::Dataset& dataset)
        : dataset_(dataset) {
        append(domain::encode_segment_header(
            {kSeq, dataset.manifest().revision(), domain::SegmentClass::kResident, 1 << 20U}));
    }

    SegmentBuilder& record(std::uint64_t id) {
        const auto payload = dataset_.payload(SampleId{id});
        return record(id, payload, crc32c(payload));
    }

    SegmentBuilder& record(
        std::uint64_t id, const std::vector<std::byte>& payload, std::uint32_t checksum) {
        entries_.push_back({SampleId{id}, bytes_.size(), payload.size()});
        append(domain::encode_record_header({SampleId{id}, kSeq, payload.size(), checksum}));
        append(payload);
        bytes_.resize((bytes_.size() + 63) / 64 * 64);
        return *this;
    }

    SegmentBuilder& entry(const FooterEntry& entry) {
        entries_.push_back(entry);
        return *this;
    }

    SegmentBuilder& footer() {
        append(domain::encode_footer(entries_, kSeq));
        return *this;
    }

    SegmentBuilder& garbage(std::size_t count) {
        bytes_.resize(bytes_.size() + count, std::byte{0xA5});
        return *this;
    }

    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

    [[nodiscard]] const std::vector<FooterEntry>& entries() const { return entries_; }

private:
    template <class Range>
    void append(const Range& range) {
        bytes_.insert(bytes_.end(), range.begin(), range.end());
    }

    const test::Dataset& dataset_;
    std::vector<std::byte> bytes_;
    std::vector<FooterEntry> entries_;
};

class SegmentScanTest : public ::testing::Test {
protected:
    SegmentContents scan(const std::vector<std::byte>& bytes, Trust trust = Trust::kChecksums) {
        device_.put("/s", bytes);
        return scan_segment(*device_.open("/s").value(), kSeq, dataset_.manifest(), trust).value();
    }

    static std::vector<std::uint64_t> ids(const SegmentContents& contents) {
        std::vector<std::uint64_t> out;
        for (const FooterEntry& entry : contents.records) {
            out.push_back(entry.sample.value());
        }
        return out;
    }

    using Ids = std::vector<std::uint64_t>;

    test::FaultDevice device_{1};
    // Larger than the scanner's buffer, empty, tiny, and ordinary.
    test::Dataset dataset_{{3'000'000, 0, 1, 64, 700, 65}};
};

TEST_F(SegmentScanTest, FindsRecordsOfEverySize) {
    SegmentBuilder segment{dataset_};
    for (std::uint64_t id = 0; id < 6; ++id) {
        segment.record(id);
    }
    EXPECT_EQ(scan(segment.bytes()).records, segment.entries());
    EXPECT_FALSE(scan(segment.bytes()).sealed);
    segment.footer();
    for (const Trust trust : {Trust::kFooter, Trust::kChecksums}) {
        EXPECT_EQ(scan(segment.bytes(), trust).records, segment.entries());
        EXPECT_TRUE(scan(segment.bytes(), trust).sealed);
    }
}

TEST_F(SegmentScanTest, DropsATornTailAtEveryLength) {
    const SegmentBuilder segment = SegmentBuilder{dataset_}.record(1).record(4).record(5);
    const auto& last = segment.entries().back();
    for (std::size_t size = 64; size < segment.bytes().size(); ++size) {
        const std::vector<std::byte> cut{
            segment.bytes().begin(), segment.bytes().begin() + static_cast<long>(size)};
        const auto found = scan(cut);
        for (std::size_t i = 0; i < segment.entries().size(); ++i) {
            const auto& entry = segment.entries()[i];
            const bool whole = entry.record_offset + 64 + entry.payload_bytes <= size;
            ASSERT_EQ(i < found.records.size(), whole) << "record " << i << ", cut at " << size;
        }
        ASSERT_EQ(
            found.records_dropped,
            size >= last.record_offset + 64 && found.records.size() < 3 ? 1U
                                                                        : found.records_dropped);
    }
}

TEST_F(SegmentScanTest, SkipsARecordWithAWrongChecksum) {
    const auto payload = dataset_.payload(SampleId{4});
    const SegmentBuilder segment =
        SegmentBuilder{dataset_}.record(1).record(4, payload, crc32c(payload) + 1).record(5);
    EXPECT_EQ(ids(scan(segment.bytes())), (Ids{1, 5}));
    EXPECT_EQ(scan(segment.bytes()).records_dropped, 1U);
}

TEST_F(SegmentScanTest, FindsAWrongChecksumUnderAGoodFooterOnRequest) {
    const auto payload = dataset_.payload(SampleId{4});
    const SegmentBuilder segment = SegmentBuilder{dataset_}
                                       .record(1)
                                       .record(4, payload, crc32c(payload) + 1)
                                       .record(5)
                                       .footer();
    EXPECT_EQ(ids(scan(segment.bytes(), Trust::kChecksums)), (Ids{1, 5}));
    EXPECT_EQ(ids(scan(segment.bytes(), Trust::kFooter)), (Ids{1, 4, 5}));
}

TEST_F(SegmentScanTest, ADamagedFooterFallsBackToTheHeaders) {
    const SegmentBuilder segment = SegmentBuilder{dataset_}.record(1).record(4).footer();
    for (std::size_t back = 1; back <= 64; ++back) {
        auto bytes = segment.bytes();
        bytes[bytes.size() - back] ^= std::byte{1};
        EXPECT_EQ(ids(scan(bytes, Trust::kFooter)), (Ids{1, 4})) << back;
    }
}

TEST_F(SegmentScanTest, DropsFooterEntriesThatContradictTheFile) {
    const SegmentBuilder segment = SegmentBuilder{dataset_}
                                       .record(1)
                                       .entry({SampleId{4}, 64, 700})           // too long
                                       .entry({SampleId{4}, 1ULL << 60U, 700})  // far outside
                                       .entry({SampleId{4}, ~0ULL - 63, 700})   // overflows
                                       .entry({SampleId{4}, 100, 700})          // unaligned
                                       .entry({SampleId{1}, 0, 0})              // in the header
                                       .entry({SampleId{99}, 64, 700})          // no such sample
                                       .entry({SampleId{5}, 64, 0})             // other size
                                       .footer();
    for (const Trust trust : {Trust::kFooter, Trust::kChecksums}) {
        EXPECT_EQ(ids(scan(segment.bytes(), trust)), (Ids{1}));
        EXPECT_EQ(scan(segment.bytes(), trust).records_dropped, 7U);
    }
}

TEST_F(SegmentScanTest, DropsRecordsThatAreNotInTheManifest) {
    const std::vector<std::byte> payload(10);
    const SegmentBuilder segment = SegmentBuilder{dataset_}
                                       .record(6, payload, crc32c(payload))
                                       .record(5, payload, crc32c(payload))
                                       .record(4);
    EXPECT_EQ(ids(scan(segment.bytes())), (Ids{4}));
    EXPECT_EQ(scan(segment.bytes()).records_dropped, 2U);
}

TEST_F(SegmentScanTest, FindsTheFooterAfterGarbageInARecoveredSegment) {
    const SegmentBuilder segment =
        SegmentBuilder{dataset_}.record(1).record(4).garbage(640).footer();
    EXPECT_TRUE(scan(segment.bytes()).sealed);
    EXPECT_EQ(ids(scan(segment.bytes())), (Ids{1, 4}));
}

TEST_F(SegmentScanTest, AHeaderOfAnotherSegmentEndsTheScan) {
    SegmentBuilder segment{dataset_};
    segment.record(1);
    device_.put("/s", segment.bytes());
    const auto other =
        scan_segment(
            *device_.open("/s").value(), domain::SegmentSeq{6}, dataset_.manifest(), Trust::kFooter)
            .value();
    EXPECT_TRUE(other.records.empty());
}

TEST_F(SegmentScanTest, AnUnreadableFileIsAnError) {
    device_.put("/s", SegmentBuilder{dataset_}.record(1).bytes());
    const auto file = device_.open("/s").value();
    device_.set_broken(test::FaultDevice::Operation::kRead, true);
    EXPECT_EQ(
        scan_segment(*file, kSeq, dataset_.manifest(), Trust::kFooter).error().code,
        ErrorCode::kUnavailable);
    EXPECT_EQ(read_segment_header(*file).error().code, ErrorCode::kUnavailable);
}

TEST_F(SegmentScanTest, ReadsOnlyAFullyValidRecord) {
    const SegmentBuilder segment = SegmentBuilder{dataset_}.record(1).record(4);
    device_.put("/s", segment.bytes());
    const auto file = device_.open("/s").value();
    const FooterEntry entry = segment.entries()[1];
    const RecordBytes read = read_record(*file, kSeq, entry).value();
    EXPECT_TRUE(std::ranges::equal(read.payload(), dataset_.payload(SampleId{4})));
    EXPECT_EQ(read.payload_crc32c, crc32c(dataset_.payload(SampleId{4})));
    EXPECT_TRUE(check_record(*file, kSeq, entry).has_value());
    const std::vector<FooterEntry> wrong{
        {SampleId{5}, entry.record_offset, entry.payload_bytes},
        {SampleId{4}, entry.record_offset - 64, entry.payload_bytes},
        {SampleId{4}, entry.record_offset, entry.payload_bytes - 1},
        {SampleId{4}, 1ULL << 40U, entry.payload_bytes}};
    for (const FooterEntry& other : wrong) {
        EXPECT_EQ(read_record(*file, kSeq, other).error().code, ErrorCode::kCorruption);
        EXPECT_EQ(check_record(*file, kSeq, other).error().code, ErrorCode::kCorruption);
    }
    device_.flip_bit("/s", entry.record_offset + 64 + 699, 7);
    EXPECT_EQ(read_record(*file, kSeq, entry).error().code, ErrorCode::kCorruption);
    EXPECT_EQ(check_record(*file, kSeq, entry).error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace stoker::sidecar
