#include "node/disk/pool_directory.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

const NodeDirectoryName kName{"team", "d1"};

WallTime wall_now() {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

class Pool : public ::testing::Test {
protected:
    void SetUp() override { root_.reset(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)); }

    Result<PoolDirectory> open(const std::string& path = "/mnt/nvme", const char* pool = "nvme") {
        return PoolDirectory::open(root_.get(), path, pool, {::geteuid(), ::getegid()});
    }

    [[nodiscard]] fs::path on_host(const std::string& path) const {
        return fs::path{folder_.path()} / path.substr(1);
    }

    static void write(const fs::path& path, const std::string& text) {
        fs::create_directories(path.parent_path());
        std::ofstream{path} << text;
    }

    static ViewRequest request(View view, const NodeDirectoryName& name = kName) {
        ViewRequest result;
        result.view = view;
        result.pool = "nvme";
        result.directory = name;
        result.pod.ns = view == View::kGuest ? "guest" : name.ns;
        return result;
    }

    void make_old_directory(const std::string& ns, const std::string& uid) {
        write(on_host("/mnt/nvme") / ns / uid / "lock", "");
        write(on_host("/mnt/nvme") / ns / uid / "segments" / "1.seg", "old");
    }

    // Creates a node directory as the driver does, with a sample in it.
    void fill(const NodeDirectoryName& name) {
        ASSERT_TRUE(open()->view_source(request(View::kOwner, name)));
        write(directory(name) / "control" / "lock", "");
        write(directory(name) / "data" / "segments" / "1.seg", std::string(100'000, 'x'));
    }

    [[nodiscard]] fs::path directory(const NodeDirectoryName& name) const {
        return on_host("/mnt/nvme") / name.ns / name.uid;
    }

    // Sweeps as of two hours from now, when all test files are old enough.
    SweepOutcome sweep(SweepRequest request, const std::set<FileId>& mounted = {}) {
        const auto outcome = open()->sweep(request, mounted, wall_now() + hours{2});
        EXPECT_TRUE(outcome) << outcome.error().message;
        return outcome.value_or(SweepOutcome{});
    }

    test::TempFolder folder_;
    UniqueFd root_;
};

// Mode and owner of everything below a directory.
std::map<std::string, mode_t> modes_below(const fs::path& top) {
    std::map<std::string, mode_t> modes;
    for (const auto& entry : fs::recursive_directory_iterator{top}) {
        struct stat status {};

        EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
        modes[entry.path()] = status.st_mode;
    }
    return modes;
}

TEST_F(Pool, CreatesAndMarksAMissingDirectory) {
    ASSERT_TRUE(open());
    EXPECT_TRUE(fs::exists(on_host("/mnt/nvme/.stoker-pool")));
    EXPECT_TRUE(open()) << "a marked one is opened again";
}

TEST_F(Pool, ChangesNothingInADirectoryWithForeignFiles) {
    write(on_host("/mnt/nvme/home/diary.txt"), "dear");
    fs::permissions(on_host("/mnt/nvme/home"), fs::perms::owner_all);
    const auto before = modes_below(folder_.path());
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kAlreadyExists);
    EXPECT_NE(opened.error().message.find("home"), std::string::npos);
    EXPECT_EQ(modes_below(folder_.path()), before);
}

TEST_F(Pool, RejectsSystemPathsEvenBehindSymbolicLinks) {
    fs::create_directories(on_host("/etc/ssl"));
    fs::create_directories(on_host("/mnt"));
    fs::create_directory_symlink("/etc/ssl", on_host("/mnt/nvme"));
    EXPECT_EQ(open("/etc/stoker").error().code, ErrorCode::kForbidden);
    EXPECT_FALSE(fs::exists(on_host("/etc/stoker")));
    EXPECT_EQ(open("/mnt/nvme").error().code, ErrorCode::kForbidden);
    EXPECT_TRUE(fs::is_empty(on_host("/etc/ssl")));
}

TEST_F(Pool, FollowsTheAdministratorsLinkToAnotherDisk) {
    fs::create_directories(on_host("/disks/a"));
    fs::create_directories(on_host("/mnt"));
    fs::create_directory_symlink("/disks/a", on_host("/mnt/nvme"));
    ASSERT_TRUE(open("/mnt/nvme"));
    EXPECT_TRUE(fs::exists(on_host("/disks/a/.stoker-pool")));
}

TEST_F(Pool, RefusesADirectoryThatBelongsToAnotherPool) {
    ASSERT_TRUE(open());
    const auto other = open("/mnt/nvme", "ssd");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::kConflict);
    EXPECT_NE(other.error().message.find("CachePool nvme"), std::string::npos);
    write(on_host("/mnt/nvme/.stoker-pool"), "garbage");
    EXPECT_EQ(open().error().code, ErrorCode::kConflict);
}

TEST_F(Pool, AdoptsADirectoryOfVersion01) {
    make_old_directory("team", "d1");
    ASSERT_TRUE(open());
    const auto source = open()->view_source(request(View::kData));
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_FALSE(fs::exists(directory(kName) / "segments"));
    EXPECT_TRUE(fs::is_empty(directory(kName) / "data"));
}

TEST_F(Pool, WaitsForASidecarOfVersion01) {
    make_old_directory("team", "d1");
    const UniqueFd held{::open((directory(kName) / "lock").c_str(), O_RDWR)};
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    EXPECT_EQ(open()->view_source(request(View::kOwner)).error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(fs::exists(directory(kName) / "segments" / "1.seg"));
}

TEST_F(Pool, ViewOwnerShowsTheWholeNodeDirectoryOtherViewsItsDataFolder) {
    const auto owner = open()->view_source(request(View::kOwner));
    const auto data = open()->view_source(request(View::kData));
    const auto shared = open()->view_source(request(View::kShared));
    ASSERT_TRUE(owner && data && shared);
    EXPECT_EQ(*file_id(data->get()), *file_id(shared->get()));
    EXPECT_NE(*file_id(owner->get()), *file_id(data->get()));
    const auto mode = [&](const char* name) {
        struct stat status {};
        EXPECT_EQ(::stat((directory(kName) / name).c_str(), &status), 0);
        return status.st_mode & 07777U;
    };
    EXPECT_EQ(mode("."), 0755U);
    EXPECT_EQ(mode("control"), 0700U);
    EXPECT_EQ(mode("data"), 0755U);
    EXPECT_EQ(mode("guests"), 0755U);
}

TEST_F(Pool, SeparatesNamespacesWithTheSameUid) {
    fill(kName);
    const auto ours = open()->view_source(request(View::kOwner));
    const auto others = open()->view_source(request(View::kOwner, {"other", kName.uid}));
    ASSERT_TRUE(ours && others);
    EXPECT_NE(*file_id(ours->get()), *file_id(others->get()));
    EXPECT_FALSE(fs::exists(directory({"other", kName.uid}) / "control" / "lock"));
}

TEST_F(Pool, GuestViewShowsOnlyItsOwnSocketFolder) {
    auto other = request(View::kGuest);
    other.pod.ns = "other";
    const auto door = open()->view_source(request(View::kGuest));
    const auto others = open()->view_source(other);
    ASSERT_TRUE(door && others);
    const UniqueFd folder{::open((directory(kName) / "guests" / "guest").c_str(), O_DIRECTORY)};
    EXPECT_EQ(*file_id(door->get()), *file_id(folder.get()));
    EXPECT_NE(*file_id(door->get()), *file_id(others->get()));
}

TEST_F(Pool, FollowsNoSymbolicLinkInPlaceOfAFolder) {
    fill(kName);
    fs::create_directories(on_host("/secret"));
    fs::remove_all(directory(kName) / "data");
    fs::create_directory_symlink(on_host("/secret"), directory(kName) / "data");
    EXPECT_FALSE(open()->view_source(request(View::kData)));
    fs::remove_all(directory(kName));
    fs::create_directories(directory(kName) / "guests");
    fs::create_directory_symlink(on_host("/secret"), directory(kName) / "guests" / "guest");
    EXPECT_FALSE(open()->view_source(request(View::kGuest)));
    fs::remove_all(directory(kName));
    fs::create_directory_symlink(on_host("/secret"), directory(kName));
    EXPECT_FALSE(open()->view_source(request(View::kOwner)));
}

TEST_F(Pool, MeasuresBytesAndMountState) {
    fill(kName);
    fill({"team", "d2"});
    const auto data = open()->view_source(request(View::kData));
    const auto use = open()->measure({*file_id(data->get())});
    ASSERT_TRUE(use);
    ASSERT_EQ(use->size(), 2U);
    EXPECT_EQ((*use)[0].name, kName);
    EXPECT_GE((*use)[0].allocated, Bytes{100'000});
    EXPECT_TRUE((*use)[0].mounted);
    EXPECT_FALSE((*use)[1].mounted);
}

TEST_F(Pool, SweepsUnkeptDirectories) {
    fill(kName);
    fill({"team", "d2"});
    fill({"other", "d3"});
    EXPECT_EQ(sweep({{kName}, {}}).removed, 2U);
    EXPECT_TRUE(fs::exists(directory(kName) / "data" / "segments" / "1.seg"));
    EXPECT_FALSE(fs::exists(on_host("/mnt/nvme/other"))) << "an empty namespace's folder goes";
}

TEST_F(Pool, SweepsNewDirectoriesOnlyIfTheOrderNamesThem) {
    fill(kName);
    fill({"team", "d2"});
    EXPECT_EQ(open()->sweep({{}, {"d2"}}, {}, wall_now())->removed, 1U);
    EXPECT_TRUE(fs::exists(directory(kName)));
}

TEST_F(Pool, KeepsMountedDirectories) {
    fill(kName);
    for (const View view : {View::kData, View::kOwner, View::kGuest}) {
        const auto source = open()->view_source(request(view));
        EXPECT_EQ(sweep({{}, {kName.uid}}, {*file_id(source->get())}).removed, 0U);
    }
    EXPECT_EQ(sweep({}).removed, 1U);
}

TEST_F(Pool, KeepsDirectoriesLockedByASidecar) {
    fill(kName);
    const UniqueFd held{::open((directory(kName) / "control" / "lock").c_str(), O_RDWR)};
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    EXPECT_EQ(sweep({}).removed, 0U);
    ASSERT_EQ(::flock(held.get(), LOCK_UN), 0);
    EXPECT_EQ(sweep({}).removed, 1U);
}

TEST_F(Pool, SweepsADirectoryWithAnyTenantContent) {
    const NodeDirectoryName name{"team", "0d1f4c5e-7a3b-4f7e-9c1d-0123456789ab"};
    fs::create_directories(on_host("/secret"));
    const auto lock = directory(name) / "control" / "lock";
    const std::vector<std::function<void()>> tricks = {
        [&] { fs::create_symlink("lock", lock); },
        [&] { fs::create_directory(lock); },
        [&] { ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0); },
        [&] {
            fs::remove_all(directory(name) / "data");
            fs::create_directory_symlink(on_host("/secret"), directory(name) / "data");
        },
        [&] { fs::rename(directory(name) / "data", directory(name) / "mine"); },
    };
    for (std::size_t i = 0; i < tricks.size(); ++i) {
        fill(name);
        fs::remove(lock);
        tricks[i]();
        const SweepOutcome outcome = sweep({});
        EXPECT_EQ(outcome.removed, 1U) << i;
        EXPECT_TRUE(outcome.failures.empty()) << i << outcome.failures.front();
    }
    EXPECT_TRUE(fs::exists(on_host("/secret")));
}

TEST_F(Pool, IsNotCreatedInsideAnotherPool) {
    fill(kName);
    const auto nested = open("/mnt/nvme/team/d1/data/inner", "inner");
    ASSERT_FALSE(nested);
    EXPECT_EQ(nested.error().code, ErrorCode::kConflict);
    EXPECT_NE(
        nested.error().message.find("inside the directory of CachePool nvme"), std::string::npos)
        << nested.error().message;
}

TEST_F(Pool, KeepsEntriesThatAreNotNodeDirectories) {
    fill(kName);
    write(on_host("/mnt/nvme/team/notes/readme"), "mine");
    EXPECT_EQ(sweep({}).removed, 1U);
    EXPECT_TRUE(fs::exists(on_host("/mnt/nvme/team/notes/readme")));
}

}  // namespace
}  // namespace stoker::node
