#include "sidecar/store/node_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "sidecar/device/posix_device.h"
#include "tests/support/dataset.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;

class NodeStoreTest : public ::testing::Test {
protected:
    StoreOptions options() {
        StoreOptions out;
        out.directory = out.control_directory = folder_.path();
        out.segment_bytes = kib(64);
        out.window_segment_bytes = kib(16);
        out.reserved_free = 0;
        out.boot_id = "boot-1";
        return out;
    }

    std::unique_ptr<NodeStore> open() {
        return NodeStore::open(*device_, dataset_.manifest(), options()).value();
    }

    // Checks as a reader does: the table is right, and the sample's bytes are at the place that it
    // names.
    void expect_served(const NodeStore& store, std::uint64_t id) {
        const auto where = store.find(SampleId{id});
        ASSERT_TRUE(where.has_value()) << "sample " << id;
        const auto path = folder_.path() + "/" + domain::segment_file(where->segment);
        std::ifstream in{path, std::ios::binary};
        in.seekg(static_cast<std::streamoff>(where->record_offset + domain::kRecordHeaderBytes));
        const auto want = dataset_.payload(SampleId{id});
        std::vector<std::byte> got(want.size());
        in.read(reinterpret_cast<char*>(got.data()), static_cast<std::streamsize>(got.size()));
        EXPECT_TRUE(in.good() || got.empty()) << path;
        EXPECT_EQ(got, want) << "sample " << id;
    }

    void append(NodeStore& store, std::uint64_t id, SegmentClass as = SegmentClass::kResident) {
        ASSERT_TRUE(store.append(SampleId{id}, dataset_.payload(SampleId{id}), as).has_value());
    }

    std::uint64_t segment_bytes_on_disk() {
        std::uint64_t bytes = 0;
        const std::filesystem::directory_iterator files{folder_.path() + "/segments"};
        for (const auto& entry : files) {
            bytes += entry.path().extension() == ".seg" ? entry.file_size() : 0;
        }
        return bytes;
    }

    test::TempFolder folder_;
    std::unique_ptr<Device> device_ = make_posix_device();
    Dataset dataset_ = Dataset::random(200, 4000, 1);
};

TEST_F(NodeStoreTest, ServesAppendedSamples) {
    const auto store = open();
    for (std::uint64_t id = 0; id < 200; ++id) {
        EXPECT_EQ(store->find(SampleId{id}), std::nullopt);
        append(*store, id, id % 2 == 0 ? SegmentClass::kResident : SegmentClass::kWindow);
    }
    for (std::uint64_t id = 0; id < 200; ++id) {
        expect_served(*store, id);
        EXPECT_TRUE(store->verify(SampleId{id}));
    }
    EXPECT_EQ(store->usage().resident_samples, 100U);
    EXPECT_EQ(store->usage().window_samples, 100U);
}

TEST_F(NodeStoreTest, KeepsEverythingWhenTheProcessDies) {
    {
        const auto store = open();
        for (std::uint64_t id = 0; id < 150; ++id) {
            append(*store, id);
        }
    }
    const auto store = open();
    EXPECT_EQ(store->recovery().samples_kept, 150U);
    EXPECT_EQ(store->recovery().samples_dropped, 0U);
    EXPECT_FALSE(store->recovery().verified_checksums);
    for (std::uint64_t id = 0; id < 150; ++id) {
        expect_served(*store, id);
    }
    EXPECT_EQ(store->find(SampleId{150}), std::nullopt);
}

TEST_F(NodeStoreTest, RebuildsTableAndStateFromTheSegments) {
    {
        const auto store = open();
        for (std::uint64_t id = 0; id < 150; ++id) {
            append(*store, id);
        }
        ASSERT_TRUE(store->close().has_value());
    }
    const auto revision = dataset_.manifest().revision();
    std::filesystem::remove(folder_.path() + "/" + domain::residency_file(revision));
    std::filesystem::remove(folder_.path() + "/" + domain::state_file(revision));
    const auto store = open();
    EXPECT_TRUE(store->recovery().verified_checksums);
    for (std::uint64_t id = 0; id < 150; ++id) {
        expect_served(*store, id);
    }
}

TEST_F(NodeStoreTest, UnlinksASegmentWithItsLastSample) {
    const auto store = open();
    for (std::uint64_t id = 0; id < 100; ++id) {
        append(*store, id, SegmentClass::kWindow);
    }
    for (std::uint64_t id = 0; id < 100; ++id) {
        store->drop(SampleId{id});
    }
    EXPECT_EQ(segment_bytes_on_disk(), 0U);
    EXPECT_EQ(store->usage().file_bytes, Bytes::zero());
    EXPECT_EQ(store->usage().window_bytes, Bytes::zero());
}

TEST_F(NodeStoreTest, CompactionFreesSpaceAndLosesNothing) {
    const auto store = open();
    for (std::uint64_t id = 0; id < 200; ++id) {
        append(*store, id);
    }
    for (std::uint64_t id = 0; id < 200; ++id) {
        if (id % 4 != 0) {
            store->drop(SampleId{id});
        }
    }
    const Bytes before = store->usage().file_bytes;
    const Bytes live = store->usage().resident_bytes;
    EXPECT_TRUE(store->compact(Bytes::unlimited()).value());
    EXPECT_LT(store->usage().file_bytes, before);
    EXPECT_EQ(store->usage().resident_bytes, live);
    for (std::uint64_t id = 0; id < 200; ++id) {
        if (id % 4 == 0) {
            expect_served(*store, id);
        }
    }
}

TEST_F(NodeStoreTest, StoresNothingThatDoesNotMatchItsChecksum) {
    const auto store = open();
    const auto payload = dataset_.payload(SampleId{7});
    const auto wrong =
        store->append(SampleId{7}, payload, SegmentClass::kResident, crc32c(payload) + 1);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().code, ErrorCode::kCorruption);
    EXPECT_EQ(store->find(SampleId{7}), std::nullopt);
    ASSERT_TRUE(
        store->append(SampleId{7}, payload, SegmentClass::kResident, crc32c(payload)).has_value());
    expect_served(*store, 7);
}

TEST_F(NodeStoreTest, LeavesAStoredSampleAlone) {
    const auto store = open();
    const auto payload = dataset_.payload(SampleId{3});
    const auto first = store->append(SampleId{3}, payload, SegmentClass::kResident);
    const auto second = store->append(SampleId{3}, payload, SegmentClass::kWindow);
    EXPECT_EQ(first.value(), second.value());
    EXPECT_EQ(store->usage().resident_samples, 1U);
}

TEST_F(NodeStoreTest, ALargeSampleGetsItsOwnSegment) {
    dataset_ = Dataset{{300'000, 10}};
    const auto store = open();
    append(*store, 0);
    append(*store, 1);
    expect_served(*store, 0);
    EXPECT_NE(store->find(SampleId{0})->segment, store->find(SampleId{1})->segment);
}

TEST_F(NodeStoreTest, RefusesSamplesThatAreNotInTheManifest) {
    const auto store = open();
    const auto payload = dataset_.payload(SampleId{3});
    const auto refuse = [&](SampleId sample, std::span<const std::byte> bytes, SegmentClass as) {
        const auto stored = store->append(sample, bytes, as);
        return !stored.has_value() && stored.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_TRUE(refuse(SampleId{200}, payload, SegmentClass::kResident));
    EXPECT_TRUE(refuse(SampleId{3}, std::span{payload}.first(1), SegmentClass::kResident));
    EXPECT_TRUE(refuse(SampleId{3}, payload, SegmentClass::kAbsent));
    EXPECT_EQ(store->find(SampleId{200}), std::nullopt);
    EXPECT_FALSE(store->verify(SampleId{200}));
    store->drop(SampleId{200});
    store->will_need(SampleId{200});
}

TEST_F(NodeStoreTest, RefusesInvalidOptions) {
    const auto refused = [&](const StoreOptions& bad) {
        const auto opened = NodeStore::open(*device_, dataset_.manifest(), bad);
        return !opened.has_value() && opened.error().code == ErrorCode::kInvalidArgument;
    };
    auto bad = options();
    bad.boot_id = "";
    EXPECT_TRUE(refused(bad));
    bad = options();
    bad.segment_bytes = Bytes{100};
    EXPECT_TRUE(refused(bad));
    bad = options();
    bad.window_segment_bytes = gib(65);
    EXPECT_TRUE(refused(bad));
    bad = options();
    bad.reserved_free = 1.0;
    EXPECT_TRUE(refused(bad));
}

TEST_F(NodeStoreTest, ClosesOnceAndAcceptsNothingAfterwards) {
    const auto store = open();
    append(*store, 0);
    ASSERT_TRUE(store->close().has_value());
    ASSERT_TRUE(store->close().has_value());
    const auto late =
        store->append(SampleId{1}, dataset_.payload(SampleId{1}), SegmentClass::kResident);
    EXPECT_EQ(late.error().code, ErrorCode::kCancelled);
    expect_served(*store, 0);
}

TEST_F(NodeStoreTest, CountsWrittenBytes) {
    const auto store = open();
    for (std::uint64_t id = 0; id < 200; ++id) {
        append(*store, id);
    }
    ASSERT_TRUE(store->close().has_value());
    EXPECT_EQ(store->usage().written_bytes, store->usage().file_bytes);
    EXPECT_EQ(store->usage().file_bytes, Bytes{segment_bytes_on_disk()});
}

}  // namespace
}  // namespace stoker::sidecar
