#include "sidecar/store/manifest_file.h"

#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "sidecar/store/incoming_manifest.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using test::Dataset;
using test::FaultDevice;

TEST(ManifestFile, ReadsBackAfterAPowerCut) {
    FaultDevice device{1};
    const Dataset dataset{{10, 20, 30}};
    const auto revision = dataset.manifest().revision();
    ASSERT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()));
    device.power_cut();
    const auto mapped = MappedManifest::open(device, "/node", revision).value();
    EXPECT_EQ(mapped.view().sample_count(), 3U);
    EXPECT_EQ(list_manifests(device, "/node").value(), std::vector{revision});
}

TEST(ManifestFile, IsWrittenAtomically) {
    const Dataset dataset{{10, 20, 30}};
    for (std::uint64_t changes = 0; changes < 8; ++changes) {
        FaultDevice device{changes};
        device.kill_after(changes);
        const auto stored = store_manifest(device, "/node", dataset.manifest_writer());
        device.revive();
        const auto opened = MappedManifest::open(device, "/node", dataset.manifest().revision());
        EXPECT_TRUE(opened.has_value() || opened.error().code == ErrorCode::kNotFound)
            << opened.error().message;
        EXPECT_TRUE(opened.has_value() || !stored.has_value());
        EXPECT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()).has_value());
    }
}

TEST(ManifestFile, ADamagedFileIsRefusedAndReplaced) {
    FaultDevice device{1};
    const Dataset dataset{{10, 20, 30}};
    const auto revision = dataset.manifest().revision();
    ASSERT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()));
    device.flip_bit("/node/" + domain::manifest_file(revision), 200, 3);
    EXPECT_EQ(MappedManifest::open(device, "/node", revision).error().code, ErrorCode::kCorruption);
    ASSERT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()).has_value());
    EXPECT_TRUE(MappedManifest::open(device, "/node", revision).has_value());
}

TEST(ManifestFile, KilledWritersLeaveOneFileAtMost) {
    FaultDevice device{1};
    const Dataset dataset{{10, 20, 30}};
    for (int kills = 0; kills < 2 * IncomingManifest::kFilesMax; ++kills) {
        device.kill_after(2);
        EXPECT_FALSE(store_manifest(device, "/node", dataset.manifest_writer()));
        device.revive();
        EXPECT_LE(device.paths().size(), 1U);
    }
    EXPECT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()));
    EXPECT_EQ(device.paths().size(), 1U);
}

TEST(ManifestFile, AnExistingFileIsNotWrittenAgain) {
    FaultDevice device{1};
    const Dataset dataset{{10, 20, 30}};
    ASSERT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()).has_value());
    const auto written = device.counters().written_bytes;
    ASSERT_TRUE(store_manifest(device, "/node", dataset.manifest_writer()).has_value());
    EXPECT_EQ(device.counters().written_bytes, written);
}

TEST(ManifestFile, RefusesAnotherRevisionUnderTheName) {
    FaultDevice device{1};
    const Dataset dataset{{10, 20, 30}};
    const domain::RevisionId other{1};
    device.put("/node/" + domain::manifest_file(other), dataset.manifest_bytes());
    EXPECT_EQ(
        MappedManifest::open(device, "/node", other).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::sidecar
