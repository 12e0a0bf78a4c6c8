// The bytes of version 1 segment and manifest files, as files. They guarantee that newer programs
// can read today's disks, and they detect unintended changes of the writer. Formats:
// docs/design/segment-format.md and manifest-format.md. STOKER_UPDATE_GOLDEN=1 rewrites the files,
// which needs a new format version, or users lose their caches without notice.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "common/domain/segment_format.h"
#include "sidecar/store/segment_scan.h"
#include "sidecar/store/segment_writer.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using domain::SegmentSeq;
using Content = std::vector<std::byte>;

constexpr std::uint64_t kRevision = 0xC9D7ECCD349F129D;
constexpr SegmentSeq kSeq{7};
constexpr std::uint64_t kCapacity = 4096;

Content golden(const std::string& name) {
    std::ifstream file{STOKER_GOLDEN_DIR "/" + name, std::ios::binary};
    std::stringstream content;
    content << file.rdbuf();
    const std::string text = content.str();
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

void expect_golden(const std::string& name, const Content& written) {
    if (std::getenv("STOKER_UPDATE_GOLDEN") != nullptr) {
        std::ofstream file{STOKER_GOLDEN_DIR "/" + name, std::ios::binary};
        file.write(
            reinterpret_cast<const char*>(written.data()),
            static_cast<std::streamsize>(written.size()));
    }
    const Content want = golden(name);
    ASSERT_EQ(written.size(), want.size()) << name;
    const auto [ours, theirs] = std::ranges::mismatch(written, want);
    EXPECT_EQ(ours, written.end()) << name << " differs at byte " << (ours - written.begin());
}

// Covers labels, an object without a label, a key with non-ASCII bytes, an empty object, a
// multipart ETag, and keys out of order.
std::vector<domain::ListedObject> objects() {
    return {
        {"dog/\xC3\xB6.png", 130, "9bf31c7ff062936a96d3c8bd1f8f2ff3-9"},
        {"README", 5, "c4ca4238a0b923820dcc509a6f75849b"},
        {"cat/2.png", 0, "d41d8cd98f00b204e9800998ecf8427e"},
        {"cat/1.png", 64, "eccbc87e4b5ce2fe28308fd9f2a7baf3"}};
}

// Bytes that depend on the sample: 3, 10, 17, … plus its id.
Content payload_of(SampleId sample, std::uint64_t size) {
    Content payload;
    for (std::uint64_t i = 0; i < size; ++i) {
        payload.push_back(static_cast<std::byte>(sample.value() + 3 + 7 * i));
    }
    return payload;
}

// The order of samples in the segment, which differs from that of their ids.
constexpr std::array<std::uint64_t, 4> kOrder{2, 0, 3, 1};

Content write_segment(
    const domain::ManifestView& manifest, SegmentClass segment_class, bool sealed) {
    test::FaultDevice device{1};
    const auto writer = SegmentWriter::create(
                            device, "/node", {kSeq, manifest.revision(), segment_class, kCapacity})
                            .value();
    for (const std::uint64_t id : kOrder) {
        const SampleId sample{id};
        const Content payload = payload_of(sample, manifest.size_bytes(sample));
        const auto offset = writer->reserve(sample, payload.size());
        EXPECT_TRUE(writer->write(offset, sample, payload, crc32c(payload)).has_value());
        writer->complete(offset, true);
    }
    EXPECT_TRUE(!sealed || writer->seal().has_value());
    return device.content("/node/segments/7.seg").value();
}

struct NodeFormat : ::testing::Test {
    void expect_records(const SegmentContents& found) const {
        ASSERT_EQ(found.records.size(), kOrder.size());
        for (std::size_t i = 0; i < kOrder.size(); ++i) {
            EXPECT_EQ(found.records[i].sample, SampleId{kOrder[i]});
        }
        EXPECT_EQ(found.records_dropped, 0U);
    }

    // Reads a golden segment with the current program, trusting its footer or not.
    void expect_readable(const std::string& name, SegmentClass segment_class, bool sealed) const {
        test::FaultDevice device{1};
        device.put("/s", golden(name));
        const auto file = device.open("/s").value();
        EXPECT_EQ(
            read_segment_header(*file).value(),
            (domain::SegmentHeader{kSeq, domain::RevisionId{kRevision}, segment_class, kCapacity}));
        for (const Trust trust : {Trust::kFooter, Trust::kChecksums}) {
            const auto found = scan_segment(*file, kSeq, manifest, trust).value();
            EXPECT_EQ(found.sealed, sealed);
            expect_records(found);
            for (const domain::FooterEntry& record : found.records) {
                const auto want = payload_of(record.sample, manifest.size_bytes(record.sample));
                EXPECT_TRUE(std::ranges::equal(read_record(*file, kSeq, record)->payload(), want));
            }
        }
    }

    const Content manifest_bytes = golden("manifest-v1.bin");
    const domain::ManifestView manifest = domain::ManifestView::open(manifest_bytes).value();
};

TEST(NodeFormatWriters, WriteTheGoldenManifest) {
    expect_golden("manifest-v1.bin", domain::encode_manifest(objects()).value());
}

TEST_F(NodeFormat, ReadsTheGoldenManifest) {
    EXPECT_EQ(manifest.revision(), domain::RevisionId{kRevision});
    EXPECT_EQ(manifest.total_bytes(), Bytes{199});
    EXPECT_EQ(manifest.largest_sample_bytes(), 130U);
    auto sorted = objects();
    std::ranges::sort(sorted, {}, &domain::ListedObject::key);
    ASSERT_EQ(manifest.sample_count(), sorted.size());
    const std::array<std::int32_t, 4> labels{domain::kNoLabel, 0, 0, 1};
    for (std::uint64_t id = 0; id < sorted.size(); ++id) {
        const auto sample = manifest.sample(SampleId{id});
        EXPECT_EQ(sample.key, sorted[id].key);
        EXPECT_EQ(sample.etag, sorted[id].etag);
        EXPECT_EQ(sample.size_bytes, sorted[id].size_bytes);
        EXPECT_EQ(sample.label, labels.at(id));
    }
    ASSERT_EQ(manifest.label_count(), 2U);
    EXPECT_EQ(manifest.label_name(0), "cat");
    EXPECT_EQ(manifest.label_name(1), "dog");
}

TEST_F(NodeFormat, WritesTheGoldenSegments) {
    expect_golden("segment-v1.seg", write_segment(manifest, SegmentClass::kResident, true));
    expect_golden("segment-v1-open.seg", write_segment(manifest, SegmentClass::kWindow, false));
}

TEST_F(NodeFormat, ReadsTheGoldenSegments) {
    expect_readable("segment-v1.seg", SegmentClass::kResident, true);
    expect_readable("segment-v1-open.seg", SegmentClass::kWindow, false);
}

}  // namespace
}  // namespace stoker::sidecar
