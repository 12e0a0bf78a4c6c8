#include "sidecar/store/old_layout.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

const std::vector<std::string> kOldFiles = {
    "/n/lock",
    "/n/leader.sock",
    "/n/leader.sock.new",
    "/n/current.json",
    "/n/current.json.tmp",
    "/n/manifest.00000000deadbeef",
    "/n/residency.00000000deadbeef",
    "/n/residency.00000000deadbeef.tmp",
    "/n/state.00000000deadbeef.json",
    "/n/segments/7.seg",
    "/n/segments/next.1024"};

const std::vector<std::string> kOtherFiles = {
    "/n/control/lock",
    "/n/data/manifest.00000000deadbeef",
    "/n/data/segments/7.seg",
    "/n/lock.old",
    "/n/manifest.mine",
    "/n/notes.txt",
    "/n/segments/007.seg",
    "/n/segments/photo.jpg"};

class OldLayout : public ::testing::Test {
protected:
    OldLayout() {
        for (const auto& path : kOldFiles) {
            device_.put(path, std::vector<std::byte>(3));
        }
        for (const auto& path : kOtherFiles) {
            device_.put(path, std::vector<std::byte>(3));
        }
    }

    test::FaultDevice device_{1};
};

TEST_F(OldLayout, RemovesExactlyTheFilesOfStokerVersion0Dot1) {
    EXPECT_EQ(remove_old_layout(device_, "/n").value(), kOldFiles.size());
    EXPECT_EQ(device_.paths(), kOtherFiles);
    EXPECT_EQ(remove_old_layout(device_, "/n").value(), 0U);
}

TEST_F(OldLayout, LeavesADirectoryWhileASidecarOfVersion0Dot1LeadsIt) {
    auto leader = device_.try_lock("/n/lock").value();
    EXPECT_EQ(remove_old_layout(device_, "/n").value(), 0U);
    EXPECT_EQ(device_.paths().size(), kOldFiles.size() + kOtherFiles.size());
    leader.reset();
    EXPECT_EQ(remove_old_layout(device_, "/n").value(), kOldFiles.size());
}

TEST_F(OldLayout, FinishesAnInterruptedRemovalLater) {
    device_.kill_after(4);
    EXPECT_FALSE(remove_old_layout(device_, "/n").has_value());
    device_.revive();
    EXPECT_TRUE(remove_old_layout(device_, "/n").has_value());
    EXPECT_EQ(device_.paths(), kOtherFiles);
}

}  // namespace
}  // namespace stoker::sidecar
