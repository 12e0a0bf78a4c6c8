// The kernel's mounts, in a mount namespace of the test's own.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/mount/mounts.h"
#include "proto/files/hand_over.h"
#include "tests/support/temp_folder.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "csi.stoker.dev";

void write(const fs::path& path, const std::string& text) {
    std::ofstream{path} << text;
}

// Root needs a mount namespace only; others get a user namespace in which they may mount.
bool enter_own_namespace() {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) {
        return false;
    }
    if (user != 0) {
        write("/proc/self/setgroups", "deny");
        write("/proc/self/uid_map", fmt::format("0 {} 1", user));
        write("/proc/self/gid_map", fmt::format("0 {} 1", group));
    }
    return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class KernelMounts : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        ASSERT_TRUE(enter_own_namespace()) << "this kernel lets us make no namespace: " << errno;
    }

    void SetUp() override {
        ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, nullptr), 0);
        fs::create_directories(top_ / "data");
        write(top_ / "data" / "sample", "bytes");
        fs::create_directories(target_.parent_path());
        source_.reset(::open((top_ / "data").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }

    void TearDown() override { ::umount2(folder_.path().c_str(), MNT_DETACH); }

    static std::string read(const fs::path& path) {
        std::ifstream file{path};
        std::string text;
        file >> text;
        return text;
    }

    test::TempFolder folder_;
    fs::path top_{folder_.path()};
    fs::path target_ = top_ / "kubelet/pods/p1/volumes/kubernetes.io~csi/view/mount";
    UniqueFd source_;
    std::unique_ptr<Mounts> mounts_ = make_mounts(folder_.path() + "/kubelet", kDriver);
};

TEST_F(KernelMounts, ShowAFolderReadOnlyWithoutDevicesAndPrograms) {
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    EXPECT_EQ(read(target_ / "sample"), "bytes");
    EXPECT_EQ(::open((target_ / "new").c_str(), O_CREAT | O_WRONLY, 0600), -1);
    EXPECT_EQ(errno, EROFS);
    EXPECT_EQ(::unlink((target_ / "sample").c_str()), -1);

    struct statvfs status {};

    ASSERT_EQ(::statvfs(target_.c_str(), &status), 0);
    constexpr unsigned long kWanted = ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC;
    EXPECT_EQ(status.f_flag & kWanted, kWanted);
}

TEST_F(KernelMounts, PassWritesToTheFolderIfMountedReadWrite) {
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadWrite));
    write(target_ / "sample", "other");
    EXPECT_EQ(read(top_ / "data" / "sample"), "other");

    struct statvfs status {};

    ASSERT_EQ(::statvfs(target_.c_str(), &status), 0);
    EXPECT_EQ(status.f_flag & (ST_NOSUID | ST_NODEV), unsigned{ST_NOSUID | ST_NODEV});
}

TEST_F(KernelMounts, MountOnceAndUnmountOnce) {
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    }
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(mounts_->unmount(target_));
        EXPECT_FALSE(fs::exists(target_));
    }
    EXPECT_EQ(read(top_ / "data" / "sample"), "bytes");
}

TEST_F(KernelMounts, OutliveTheProgramAndAreUnmountedByTheNextOne) {
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    mounts_.reset();
    EXPECT_EQ(read(target_ / "sample"), "bytes");
    mounts_ = make_mounts(folder_.path() + "/kubelet", kDriver);
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    ASSERT_TRUE(mounts_->unmount(target_));
    EXPECT_FALSE(fs::exists(target_));
}

TEST_F(KernelMounts, LetAReaderKeepItsFileAfterTheUnmount) {
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    std::ifstream open_file{target_ / "sample"};
    ASSERT_TRUE(mounts_->unmount(target_));
    std::string text;
    open_file >> text;
    EXPECT_EQ(text, "bytes");
}

TEST_F(KernelMounts, KnowWhichVolumesBelongToThisDriver) {
    EXPECT_TRUE(mounts_->mounted()->empty());
    ASSERT_TRUE(mounts_->mount(source_.get(), target_, Access::kReadOnly));
    EXPECT_TRUE(mounts_->mounted()->empty()) << "without the kubelet's note it is nobody's volume";
    write(target_.parent_path() / "vol_data.json", R"({"driverName":"other.example"})");
    EXPECT_TRUE(mounts_->mounted()->empty());
    write(
        target_.parent_path() / "vol_data.json",
        fmt::format(R"({{"attachmentID":"x","driverName":"{}","nodeName":"n"}})", kDriver));
    const auto mounted = mounts_->mounted();
    ASSERT_TRUE(mounted);
    EXPECT_EQ(*mounted, std::set<FileId>{*file_id(source_.get())});
}

using FuseMount = KernelMounts;

TEST_F(FuseMount, IsReadOnlyWhateverItsMountPointSays) {
    const auto mount = mounts_->mount_files(target_);
    ASSERT_TRUE(mount && *mount) << "this machine has no FUSE device";
    // Remounts the mount point writable, as a container runtime may do.
    ASSERT_EQ(::mount(nullptr, target_.c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr), 0);
    EXPECT_EQ(::access(target_.c_str(), W_OK), -1);
    EXPECT_EQ(errno, EROFS);
}

TEST_F(FuseMount, AFileMountedOverDevFuseIsNotTakenForAConnection) {
    const auto mount = mounts_->mount_files(target_);
    ASSERT_TRUE(mount && *mount) << "this machine has no FUSE device";
    EXPECT_TRUE(files::is_fuse_connection((*mount)->get()));
    ASSERT_EQ(::mount((top_ / "data/sample").c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr), 0);
    const UniqueFd false_one{::open("/dev/fuse", O_RDONLY | O_CLOEXEC)};
    ASSERT_EQ(::umount2("/dev/fuse", MNT_DETACH), 0);
    ASSERT_TRUE(false_one.valid());
    EXPECT_FALSE(files::is_fuse_connection(false_one.get()));
}

TEST_F(FuseMount, EndsWithItsUnmountThoughItIsInUse) {
    const auto mount = mounts_->mount_files(target_);
    ASSERT_TRUE(mount && *mount) << "this machine has no FUSE device";
    const UniqueFd user{::open(target_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    pollfd connection{(*mount)->get(), POLLIN, 0};
    ::poll(&connection, 1, 0);
    EXPECT_EQ(connection.revents & POLLERR, 0);
    ASSERT_TRUE(mounts_->unmount(target_));
    ::poll(&connection, 1, 0);
    EXPECT_NE(connection.revents & POLLERR, 0) << "requests that wait would wait for ever";
}

TEST_F(FuseMount, IsFoundAndUnmountedThoughNoProcessServesIt) {
    auto mount = mounts_->mount_files(target_);
    ASSERT_TRUE(mount && *mount) << "this machine has no FUSE device";
    write(
        target_.parent_path() / "vol_data.json",
        fmt::format(R"({{"attachmentID":"x","driverName":"{}","nodeName":"n"}})", kDriver));
    const auto again = mounts_->mount_files(target_);
    ASSERT_TRUE(again);
    EXPECT_FALSE(*again) << "it is mounted already";
    EXPECT_TRUE(fs::is_directory(target_)) << "the root's attributes are known";
    EXPECT_EQ(mounts_->mounted()->size(), 1U);
    mount->reset();  // nobody holds the descriptor any more
    EXPECT_EQ(mounts_->mounted()->size(), 1U);
    ASSERT_TRUE(mounts_->unmount(target_));
    EXPECT_FALSE(fs::exists(target_));
}

}  // namespace
}  // namespace stoker::node
