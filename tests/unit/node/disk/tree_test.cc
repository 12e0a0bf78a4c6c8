#include "node/disk/tree.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;

class Tree : public ::testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(root_);
        fd_.reset(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }

    static void write(const fs::path& path, std::size_t bytes) {
        std::ofstream{path} << std::string(bytes, 'x');
    }

    test::TempFolder folder_;
    fs::path root_ = fs::path{folder_.path()} / "root";
    UniqueFd fd_;
};

TEST_F(Tree, CountsAllocatedBlocksNotApparentSizes) {
    write(root_ / "a", 100'000);
    write(root_ / "sparse", 1);
    ASSERT_EQ(::truncate((root_ / "sparse").c_str(), 1 << 30), 0);
    const auto use = measure_tree(fd_.get(), 100);
    ASSERT_TRUE(use);
    EXPECT_GE(use->allocated, Bytes{100'000});
    EXPECT_LT(use->allocated, mib(1));
    EXPECT_EQ(use->entries, 2U);
    EXPECT_TRUE(use->complete);
}

TEST_F(Tree, CountsAHardLinkedFileOnce) {
    write(root_ / "one", 1'000'000);
    for (int i = 0; i < 99; ++i) {
        fs::create_hard_link(root_ / "one", root_ / std::to_string(i));
    }
    const Bytes allocated = measure_tree(fd_.get(), 1000)->allocated;
    EXPECT_GT(allocated, Bytes{900'000});
    EXPECT_LT(allocated, Bytes{1'100'000});
}

TEST_F(Tree, StopsCountingAtItsLimit) {
    for (int i = 0; i < 50; ++i) {
        write(root_ / std::to_string(i), 1);
    }
    const auto use = measure_tree(fd_.get(), 20);
    EXPECT_EQ(use->entries, 20U);
    EXPECT_FALSE(use->complete);
}

TEST_F(Tree, FollowsNoSymbolicLink) {
    const fs::path outside = fs::path{folder_.path()} / "outside";
    fs::create_directories(outside / "inner");
    write(outside / "precious", 500'000);
    fs::create_directory_symlink(outside, root_ / "link");
    fs::create_symlink(outside / "precious", root_ / "file");
    EXPECT_LT(measure_tree(fd_.get(), 100)->allocated, kib(64));
    ASSERT_TRUE(empty_tree(fd_.get()));
    EXPECT_TRUE(fs::is_empty(root_));
    EXPECT_TRUE(fs::exists(outside / "precious"));
    EXPECT_TRUE(fs::exists(outside / "inner"));
}

TEST_F(Tree, RemovesTreesOfAnyDepthAndKind) {
    UniqueFd at{::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const std::string name(200, 'd');
    for (int depth = 0; depth < 200; ++depth) {  // 40,000 bytes of path
        ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
        UniqueFd next{::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        ASSERT_EQ(::mkfifoat(at.get(), "pipe", 0600), 0);
        at = std::move(next);
    }
    write(root_ / ".removing-0", 1);  // a temporary name of the removal itself
    fs::create_hard_link(root_ / ".removing-0", root_ / "hard");
    ASSERT_TRUE(empty_tree(fd_.get()));
    EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace stoker::node
