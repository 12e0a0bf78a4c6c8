#include "sidecar/store/directory_lock.h"

#include <gtest/gtest.h>

#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

TEST(DirectoryLock, OnlyOneLeads) {
    test::FaultDevice device{1};
    auto leader = DirectoryLock::try_acquire(device, "/node").value();
    ASSERT_TRUE(leader.has_value());
    EXPECT_FALSE(DirectoryLock::try_acquire(device, "/node").value().has_value());
    EXPECT_TRUE(DirectoryLock::try_acquire(device, "/other").value().has_value());
    leader.reset();
    EXPECT_TRUE(DirectoryLock::try_acquire(device, "/node").value().has_value());
}

TEST(DirectoryLock, IsInTheFolderThatTrainersCannotSee) {
    test::FaultDevice device{1};
    const auto leader = DirectoryLock::try_acquire(device, "/node").value();
    EXPECT_EQ(device.try_lock("/node/control/lock").value(), nullptr);
    EXPECT_NE(device.try_lock("/node/data/lock").value(), nullptr);
}

TEST(DirectoryLock, StaysHeldAfterTheLockObjectIsMoved) {
    test::FaultDevice device{1};
    auto leader = DirectoryLock::try_acquire(device, "/node").value();
    const std::optional<DirectoryLock> owner{std::move(leader)};
    EXPECT_FALSE(DirectoryLock::try_acquire(device, "/node").value().has_value());
}

TEST(DirectoryLock, ReportsWhyItCannotLock) {
    test::FaultDevice device{1};
    device.set_broken(test::FaultDevice::Operation::kOpen, true);
    EXPECT_EQ(DirectoryLock::try_acquire(device, "/node").error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace stoker::sidecar
