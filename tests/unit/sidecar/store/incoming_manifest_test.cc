#include "sidecar/store/incoming_manifest.h"

#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

class IncomingManifestTest : public testing::Test {
protected:
    IncomingManifestTest()
        : device(1),
          dataset(test::Dataset::random(5, 100, 2)) {
        EXPECT_TRUE(device.make_folder("/d"));
    }

    std::unique_ptr<IncomingManifest> begin() {
        return IncomingManifest::create(
                   device, "/d", dataset.manifest().revision(), dataset.manifest_bytes().size())
            .value();
    }

    [[nodiscard]] std::span<const std::byte> all() const { return dataset.manifest_bytes(); }

    [[nodiscard]] std::span<const std::byte> first_half() const {
        return all().first(all().size() / 2);
    }

    [[nodiscard]] std::span<const std::byte> second_half() const {
        return all().subspan(first_half().size());
    }

    test::FaultDevice device;
    test::Dataset dataset;
};

TEST_F(IncomingManifestTest, GetsItsNameOnceItIsWhole) {
    const std::string path = join_path("/d", domain::manifest_file(dataset.manifest().revision()));
    const auto file = begin();
    ASSERT_TRUE(file->append(first_half()));
    EXPECT_FALSE(file->is_complete());
    ASSERT_TRUE(file->append(second_half()));
    EXPECT_FALSE(device.content(path).has_value());
    ASSERT_TRUE(file->finish());
    EXPECT_EQ(device.content(path)->size(), dataset.manifest_bytes().size());
}

TEST_F(IncomingManifestTest, AnAbandonedTransferLeavesTheNextOneAlone) {
    auto abandoned = begin();
    ASSERT_TRUE(abandoned->append(first_half()));
    const auto next = begin();
    ASSERT_TRUE(next->append(first_half()));
    abandoned.reset();
    ASSERT_TRUE(next->append(second_half()));
    EXPECT_TRUE(next->finish());
    EXPECT_EQ(device.paths().size(), 1U) << "no file of the abandoned one stays";
}

}  // namespace
}  // namespace stoker::sidecar
