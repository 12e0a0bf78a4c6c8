// Samples that are stored in parts.
#include <array>
#include <map>
#include <span>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "common/log/log.h"
#include "sidecar/store/node_store.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;
using test::FaultDevice;

constexpr std::uint64_t kLargeBytes = 100'001;
constexpr std::uint64_t kPartBytes = 16 << 10;
constexpr SampleId kLarge{0};
constexpr SampleId kSmall{1};

class SampleWriterTest : public ::testing::Test {
protected:
    SampleWriterTest() { log::set_level(log::Level::kError); }

    std::unique_ptr<NodeStore> open(const std::string& boot_id = "boot-1") {
        StoreOptions options;
        options.directory = "/node";
        options.control_directory = "/control";
        options.segment_bytes = kib(32);
        options.window_segment_bytes = kib(8);
        options.reserved_free = 0;
        options.boot_id = boot_id;
        return NodeStore::open(device_, dataset_.manifest(), options).value();
    }

    static std::unique_ptr<SampleWriter> begin(
        NodeStore& store, SegmentClass as = SegmentClass::kResident) {
        return store.begin(kLarge, as).value();
    }

    // Writes the parts, the last one first, up to the first error.
    [[nodiscard]] Status write_parts(SampleWriter& writer) const {
        const std::span payload{payload_};
        for (std::uint64_t at = kLargeBytes / kPartBytes * kPartBytes;; at -= kPartBytes) {
            const auto part = payload.subspan(at).first(std::min(kPartBytes, kLargeBytes - at));
            STOKER_TRY_VOID(writer.write(at, part));
            if (at == 0) {
                return {};
            }
        }
    }

    void store_large(NodeStore& store) {
        const auto writer = begin(store);
        ASSERT_TRUE(write_parts(*writer).has_value());
        ASSERT_TRUE(writer->finish(crc32c(payload_)).has_value());
    }

    [[nodiscard]] std::uint64_t disk_bytes() const {
        std::uint64_t bytes = 0;
        for (const std::string& path : device_.paths()) {
            bytes += path.ends_with(".seg") ? device_.content(path)->size() : 0;
        }
        return bytes;
    }

    void expect_served(NodeStore& store) {
        const auto record = store.read(kLarge);
        ASSERT_TRUE(record.has_value()) << record.error().message;
        EXPECT_TRUE(std::ranges::equal(record->payload(), payload_));
        EXPECT_TRUE(store.verify(kLarge));
    }

    FaultDevice device_{1};
    Dataset dataset_{{kLargeBytes, 500}};
    std::vector<std::byte> payload_ = dataset_.payload(kLarge);
};

TEST_F(SampleWriterTest, StoresPartsInAnyOrder) {
    const auto store = open();
    store_large(*store);
    expect_served(*store);
    EXPECT_EQ(store->usage().resident_samples, 1U);
    EXPECT_EQ(store->usage().unfinished_bytes, Bytes::zero());
    EXPECT_EQ(Bytes{disk_bytes()}, store->usage().file_bytes);
}

TEST_F(SampleWriterTest, IsKeptOverARestartAndAReboot) {
    store_large(*open());
    const auto restarted = open();
    EXPECT_EQ(restarted->recovery().samples_kept, 1U);
    expect_served(*restarted);
    ASSERT_TRUE(restarted->close().has_value());
    device_.power_cut();
    expect_served(*open("boot-2"));
}

TEST_F(SampleWriterTest, SpaceIsTakenBeforeTheFirstPart) {
    const auto store = open();
    device_.set_capacity(Bytes{disk_bytes() + kLargeBytes - 1});
    const auto refused = store->begin(kLarge, SegmentClass::kResident);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(disk_bytes(), 0U);
    device_.set_capacity(gib(1));
    const auto writer = begin(*store);
    EXPECT_GE(disk_bytes(), kLargeBytes);
    EXPECT_EQ(store->usage().unfinished_bytes, Bytes{disk_bytes()});
}

TEST_F(SampleWriterTest, AnAbandonedSampleLeavesNothing) {
    const auto store = open();
    {
        const auto writer = begin(*store);
        ASSERT_TRUE(write_parts(*writer).has_value());
    }
    EXPECT_EQ(store->find(kLarge), std::nullopt);
    EXPECT_EQ(disk_bytes(), 0U);
    EXPECT_EQ(store->usage().file_bytes, Bytes::zero());
    EXPECT_EQ(store->usage().unfinished_bytes, Bytes::zero());
    store_large(*store);
    expect_served(*store);
}

TEST_F(SampleWriterTest, OtherSamplesAreStoredMeanwhile) {
    const auto store = open();
    const auto writer = begin(*store);
    ASSERT_TRUE(
        store->append(kSmall, dataset_.payload(kSmall), SegmentClass::kResident).has_value());
    EXPECT_TRUE(store->verify(kSmall));
    EXPECT_FALSE(store->verify(kLarge));
    ASSERT_TRUE(write_parts(*writer).has_value());
    ASSERT_TRUE(writer->finish(crc32c(payload_)).has_value());
    expect_served(*store);
    EXPECT_TRUE(store->verify(kSmall));
}

TEST_F(SampleWriterTest, AStoredSampleIsNotBegun) {
    const auto store = open();
    store_large(*store);
    EXPECT_EQ(
        store->begin(kLarge, SegmentClass::kResident).error().code, ErrorCode::kAlreadyExists);
    EXPECT_EQ(
        store->begin(SampleId{2}, SegmentClass::kResident).error().code,
        ErrorCode::kInvalidArgument);
    EXPECT_EQ(
        store->begin(kSmall, SegmentClass::kAbsent).error().code, ErrorCode::kInvalidArgument);
    ASSERT_TRUE(store->close().has_value());
    EXPECT_EQ(store->begin(kSmall, SegmentClass::kWindow).error().code, ErrorCode::kCancelled);
}

TEST_F(SampleWriterTest, ADroppedSampleFreesItsSegment) {
    const auto store = open();
    store_large(*store);
    store->drop(kLarge);
    EXPECT_EQ(disk_bytes(), 0U);
    store_large(*store);
    expect_served(*store);
}

TEST_F(SampleWriterTest, AFailedHeadPublishesNothing) {
    const auto store = open();
    const auto writer = begin(*store);
    ASSERT_TRUE(write_parts(*writer).has_value());
    device_.set_broken(FaultDevice::Operation::kWrite, true);
    EXPECT_EQ(writer->finish(crc32c(payload_)).error().code, ErrorCode::kUnavailable);
    device_.set_broken(FaultDevice::Operation::kWrite, false);
    EXPECT_EQ(store->find(kLarge), std::nullopt);
    EXPECT_EQ(disk_bytes(), 0U);
}

// Kills the process at each of its changes to the disk, and half of the time cuts the power, too.
TEST_F(SampleWriterTest, ACrashAtAnyPointServesTheWholeSampleOrNothing) {
    std::map<bool, int> served;
    for (std::uint64_t changes = 0; changes < 40; ++changes) {
        FaultDevice device{changes};
        const auto open_here = [&](const std::string& boot) {
            StoreOptions options;
            options.directory = "/node";
            options.control_directory = "/control";
            options.reserved_free = 0;
            options.boot_id = boot;
            return NodeStore::open(device, dataset_.manifest(), options).value();
        };
        {
            const auto store = open_here("boot-1");
            device.kill_after(changes);
            if (auto writer = store->begin(kLarge, SegmentClass::kResident)) {
                if (write_parts(**writer)) {
                    static_cast<void>((*writer)->finish(crc32c(payload_)));
                }
            }
        }
        device.revive();
        const bool cut = changes % 2 == 1;
        if (cut) {
            device.power_cut();
        }
        const auto store = open_here(cut ? "boot-2" : "boot-1");
        const bool is_stored = store->find(kLarge).has_value();
        ++served[is_stored];
        EXPECT_EQ(store->verify(kLarge), is_stored) << "after " << changes << " changes";
        std::size_t segments = 0;
        for (const std::string& path : device.paths()) {
            segments += path.ends_with(".seg") ? 1 : 0;
        }
        EXPECT_EQ(segments, is_stored ? 1U : 0U) << "after " << changes << " changes";
    }
    EXPECT_GT(served[false], 5);
    EXPECT_GT(served[true], 5);
}

// A position between the record's head and the footer.
TEST_F(SampleWriterTest, ASegmentWhoseWriterDiedIsSealedByTheNextLeader) {
    {
        const auto store = open();
        const auto writer = begin(*store);
        ASSERT_TRUE(write_parts(*writer).has_value());
        device_.kill_after(1);
        static_cast<void>(writer->finish(crc32c(payload_)));
    }
    device_.revive();
    EXPECT_EQ(open("boot-2")->recovery().samples_kept, 1U);
    std::size_t segments = 0;
    for (const std::string& path : device_.paths()) {
        if (path.ends_with(".seg")) {
            ++segments;
            const auto content = device_.content(path).value();
            const auto tail = std::span{content}.last(domain::kFooterTailBytes);
            EXPECT_TRUE(domain::footer_bytes(tail).has_value());
            EXPECT_EQ(content.size(), SegmentWriter::capacity_for(kLargeBytes));
        }
    }
    EXPECT_EQ(segments, 1U);
    expect_served(*open("boot-2"));
}

}  // namespace
}  // namespace stoker::sidecar
