// States in which a new leader may find a node directory, and their recovery.
#include "sidecar/store/recovery.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "common/log/log.h"
#include "sidecar/store/manifest_file.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;
using test::FaultDevice;

constexpr std::uint64_t kSamples = 60;

class RecoveryTest : public ::testing::Test {
protected:
    RecoveryTest() { log::set_level(log::Level::kError); }

    StoreOptions options() {
        StoreOptions out;
        out.directory = out.control_directory = "/node";
        out.segment_bytes = kib(16);
        out.window_segment_bytes = kib(16);
        out.reserved_free = 0;
        out.boot_id = boot_;
        return out;
    }

    std::unique_ptr<NodeStore> open() { return open(dataset_, options()); }

    std::unique_ptr<NodeStore> open(const Dataset& dataset, const StoreOptions& with) {
        auto opened = NodeStore::open(device_, dataset.manifest(), with);
        EXPECT_TRUE(opened.has_value()) << opened.error().message;
        return *std::move(opened);
    }

    // Stores every sample and stops, in an orderly way or by a crash.
    void live_once(bool orderly) {
        const auto store = open();
        append_all(*store, dataset_);
        if (orderly) {
            ASSERT_TRUE(store->close().has_value());
        }
    }

    static void append_all(NodeStore& store, const Dataset& dataset) {
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            const auto payload = dataset.payload(SampleId{id});
            ASSERT_TRUE(store.append(SampleId{id}, payload, SegmentClass::kResident).has_value());
        }
    }

    std::uint64_t count_verified(NodeStore& store) {
        std::uint64_t good = 0;
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            const bool there = store.find(SampleId{id}).has_value();
            EXPECT_EQ(store.verify(SampleId{id}), there) << "sample " << id;
            good += there ? 1 : 0;
        }
        return good;
    }

    std::vector<std::string> segment_paths() {
        std::vector<std::string> out;
        for (const std::string& path : device_.paths()) {
            if (path.ends_with(".seg")) {
                out.push_back(path);
            }
        }
        return out;
    }

    std::string path_of(std::string_view name) { return fmt::format("/node/{}", name); }

    FaultDevice device_{1};
    Dataset dataset_{std::vector<std::uint64_t>(kSamples, 1000)};
    std::string boot_ = "boot-1";
};

TEST_F(RecoveryTest, AnEmptyDirectoryIsANewOne) {
    const auto store = open();
    EXPECT_EQ(store->recovery().segments_kept, 0U);
    EXPECT_EQ(store->recovery().segments_dropped, 0U);
    EXPECT_EQ(count_verified(*store), 0U);
}

TEST_F(RecoveryTest, NeedsNoVerificationAfterAnOrderlyStopAndAReboot) {
    live_once(true);
    device_.power_cut();
    boot_ = "boot-2";
    const auto reads_before = device_.counters().read_bytes;
    const auto store = open();
    EXPECT_TRUE(store->recovery().after_clean_stop);
    EXPECT_EQ(store->recovery().samples_kept, kSamples);
    EXPECT_LT(device_.counters().read_bytes - reads_before, 10'000U);
    EXPECT_EQ(count_verified(*store), kSamples);
}

TEST_F(RecoveryTest, AfterAPowerCutOnlyVerifiedSamplesAreServed) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        FaultDevice device{seed};
        {
            const auto store = NodeStore::open(device, dataset_.manifest(), options()).value();
            append_all(*store, dataset_);
            ASSERT_TRUE(device.sync_folder("/node/segments").has_value());
        }
        device.power_cut();
        auto rebooted = options();
        rebooted.boot_id = "boot-2";
        const auto store = NodeStore::open(device, dataset_.manifest(), rebooted).value();
        EXPECT_TRUE(store->recovery().verified_checksums);
        EXPECT_LT(store->recovery().samples_kept, kSamples);
        EXPECT_EQ(count_verified(*store), store->recovery().samples_kept);
    }
}

TEST_F(RecoveryTest, KeepsASegmentSyncedBeforeThePowerCut) {
    {
        const auto store = open();
        append_all(*store, dataset_);
        ASSERT_TRUE(store->compact(Bytes::unlimited()).value());
    }
    device_.power_cut();
    boot_ = "boot-2";
    const auto store = open();
    EXPECT_GE(store->recovery().samples_kept, 4U * 14U);  // all but the open segment's
    EXPECT_EQ(count_verified(*store), store->recovery().samples_kept);
}

TEST_F(RecoveryTest, ADroppedSampleStaysAbsentUntilAReboot) {
    {
        const auto store = open();
        append_all(*store, dataset_);
        store->drop(SampleId{7});
    }
    EXPECT_EQ(open()->find(SampleId{7}), std::nullopt);
}

TEST_F(RecoveryTest, ADamagedSampleNeverReturns) {
    {
        const auto store = open();
        append_all(*store, dataset_);
        ASSERT_TRUE(store->compact(Bytes::unlimited()).value());
        const auto where = store->find(SampleId{7});
        device_.flip_bit(
            path_of(domain::segment_file(where->segment)), where->record_offset + 100, 0);
        EXPECT_FALSE(store->verify(SampleId{7}));
        ASSERT_TRUE(store->close().has_value());
    }
    const auto forget_table = [&] {
        ASSERT_TRUE(device_.unlink(path_of(domain::residency_file(dataset_.manifest().revision())))
                        .has_value());
    };
    forget_table();
    EXPECT_EQ(open()->find(SampleId{7}), std::nullopt);
    device_.power_cut();
    boot_ = "boot-2";
    EXPECT_EQ(open()->find(SampleId{7}), std::nullopt);
    forget_table();
    const auto store = open();
    EXPECT_EQ(store->find(SampleId{7}), std::nullopt);
    EXPECT_EQ(count_verified(*store), kSamples - 1);
}

TEST_F(RecoveryTest, DropsAndCountsSegmentsOfAnotherVersion) {
    live_once(true);
    const auto paths = segment_paths();
    auto other = device_.content(paths.front()).value();
    other.at(8) = std::byte{2};
    device_.put(paths.front(), other);
    const auto store = open();
    EXPECT_EQ(store->recovery().segments_dropped, 1U);
    EXPECT_EQ(store->recovery().segments_kept, paths.size() - 1);
    EXPECT_FALSE(device_.content(paths.front()).has_value());
    EXPECT_EQ(count_verified(*store), store->recovery().samples_kept);
}

TEST_F(RecoveryTest, DropsASegmentUnderAWrongName) {
    live_once(true);
    device_.put(path_of("segments/999.seg"), device_.content(segment_paths().front()).value());
    const auto store = open();
    EXPECT_EQ(store->recovery().segments_dropped, 1U);
    EXPECT_EQ(count_verified(*store), kSamples);
}

TEST_F(RecoveryTest, DropsASegmentThatIsLongerThanWhatReadersMap) {
    live_once(true);
    auto grown = device_.content(segment_paths().front()).value();
    grown.resize(20'000);
    device_.put(segment_paths().front(), grown);
    EXPECT_EQ(open()->recovery().segments_dropped, 1U);
}

TEST_F(RecoveryTest, SurvivesEmptyAndTruncatedSegmentFiles) {
    live_once(true);
    const auto paths = segment_paths();
    device_.cut(paths.at(0), 0);
    device_.cut(paths.at(1), 63);
    device_.cut(paths.at(2), 2500);
    const auto store = open();
    EXPECT_EQ(store->recovery().segments_dropped, 2U);
    EXPECT_EQ(count_verified(*store), store->recovery().samples_kept);
    EXPECT_GT(store->recovery().samples_kept, 0U);
}

TEST_F(RecoveryTest, LeavesForeignFilesAlone) {
    live_once(true);
    const std::vector<std::string> foreign{
        "lock", "leader.sock", "notes.txt", "manifest.old", "segments/readme", "segments/007.seg"};
    for (const std::string& name : foreign) {
        device_.put(path_of(name), std::vector<std::byte>(3));
    }
    const auto store = open();
    for (const std::string& name : foreign) {
        EXPECT_TRUE(device_.content(path_of(name)).has_value()) << name;
    }
    EXPECT_EQ(store->recovery().segments_dropped, 0U);
}

class TwoRevisionsTest : public RecoveryTest {
protected:
    void store_manifests() {
        ASSERT_TRUE(store_manifest(device_, "/node", dataset_.manifest_writer()).has_value());
        ASSERT_TRUE(store_manifest(device_, "/node", newer_.manifest_writer()).has_value());
    }

    Dataset newer_{std::vector<std::uint64_t>(kSamples, 900), 2};
};

TEST_F(TwoRevisionsTest, ANewRevisionRemovesTheOldOne) {
    live_once(true);
    store_manifests();
    const auto store = open(newer_, options());
    EXPECT_GT(store->recovery().segments_dropped, 0U);
    EXPECT_TRUE(segment_paths().empty());
    const auto old = dataset_.manifest().revision();
    EXPECT_FALSE(device_.content(path_of(domain::manifest_file(old))).has_value());
    EXPECT_FALSE(device_.content(path_of(domain::residency_file(old))).has_value());
    EXPECT_FALSE(device_.content(path_of(domain::state_file(old))).has_value());
    EXPECT_TRUE(MappedManifest::open(device_, "/node", newer_.manifest().revision()).has_value());
}

TEST_F(TwoRevisionsTest, RemovesTemporaryFilesOfACompleteManifest) {
    store_manifests();
    const std::string manifest = domain::manifest_file(dataset_.manifest().revision());
    device_.put(path_of(manifest + ".tmp"), std::vector<std::byte>(3));
    device_.put(path_of(manifest + ".7.tmp"), std::vector<std::byte>(3));
    const auto store = open();
    EXPECT_FALSE(device_.content(path_of(manifest + ".tmp")).has_value());
    EXPECT_FALSE(device_.content(path_of(manifest + ".7.tmp")).has_value());
    EXPECT_TRUE(MappedManifest::open(device_, "/node", dataset_.manifest().revision()).has_value());
}

TEST_F(TwoRevisionsTest, LeavesARevisionInUseAlone) {
    live_once(true);
    store_manifests();
    auto with = options();
    with.keep_revisions = {dataset_.manifest().revision()};
    const auto store = open(newer_, with);
    EXPECT_TRUE(MappedManifest::open(device_, "/node", dataset_.manifest().revision()).has_value());
    EXPECT_EQ(store->recovery().segments_dropped, 0U);
    append_all(*store, newer_);
    with.keep_revisions = {newer_.manifest().revision()};
    const auto old = open(dataset_, with);
    EXPECT_EQ(count_verified(*old), kSamples);
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_TRUE(store->verify(SampleId{id}));
    }
}

TEST_F(TwoRevisionsTest, TwoStoresInOneDirectoryUseDifferentNumbers) {
    auto with = options();
    with.keep_revisions = {dataset_.manifest().revision(), newer_.manifest().revision()};
    const auto old = open(dataset_, with);
    const auto fresh = open(newer_, with);
    append_all(*old, dataset_);
    append_all(*fresh, newer_);
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_TRUE(old->verify(SampleId{id}));
        EXPECT_TRUE(fresh->verify(SampleId{id}));
    }
}

TEST_F(RecoveryTest, RemovesTemporaryFilesOfOtherRevisions) {
    device_.put(path_of("manifest.00000000000000aa.tmp"), std::vector<std::byte>(3));
    device_.put(path_of("manifest.00000000000000aa.3.tmp"), std::vector<std::byte>(3));
    device_.put(path_of("state.00000000000000aa.json.tmp"), std::vector<std::byte>(3));
    const auto store = open();
    EXPECT_FALSE(device_.content(path_of("manifest.00000000000000aa.tmp")).has_value());
    EXPECT_FALSE(device_.content(path_of("manifest.00000000000000aa.3.tmp")).has_value());
    EXPECT_FALSE(device_.content(path_of("state.00000000000000aa.json.tmp")).has_value());
}

TEST_F(RecoveryTest, LeavesAnUnreadableSegmentInPlace) {
    live_once(true);
    const auto count = segment_paths().size();
    device_.set_broken(FaultDevice::Operation::kRead, true);
    EXPECT_FALSE(NodeStore::open(device_, dataset_.manifest(), options()).has_value())
        << "the state file cannot be read, so nothing can be believed";
    device_.set_broken(FaultDevice::Operation::kRead, false);
    EXPECT_EQ(segment_paths().size(), count);
    EXPECT_EQ(open()->recovery().samples_kept, kSamples);
}

TEST_F(RecoveryTest, ServesOnAFullDisk) {
    live_once(false);
    device_.set_capacity(Bytes::zero());
    const auto store = open();
    EXPECT_EQ(count_verified(*store), kSamples);
}

TEST_F(RecoveryTest, KeepsEverythingWhereverTheProcessWasKilled) {
    // Also kills recovery, at each of its calls that change the disk.
    live_once(false);
    for (std::uint64_t changes = 0; changes < 12; ++changes) {
        device_.kill_after(changes);
        static_cast<void>(NodeStore::open(device_, dataset_.manifest(), options()));
        device_.revive();
        const auto store = open();
        EXPECT_EQ(count_verified(*store), kSamples) << "killed after " << changes << " changes";
    }
}

}  // namespace
}  // namespace stoker::sidecar
