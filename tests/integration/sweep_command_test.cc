// What a sweep pod runs, run here: the real find, flock and rm on a real directory.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operator/controllers/cachepool/sweep_pod.h"
#include "tests/support/temp_folder.h"

namespace stoker::control {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

struct SweepCommand : ::testing::Test {
    // A node directory as a sidecar leaves it, last changed two hours ago.
    void make_directory(const std::string& name, bool old = true) {
        fs::create_directories(root / name / "segments");
        std::ofstream(root / name / "lock") << "";
        std::ofstream(root / name / "segments" / "1.seg") << "bytes";
        if (old) {
            fs::last_write_time(root / name, fs::file_time_type::clock::now() - hours{2});
        }
    }

    int sweep(const std::vector<std::string>& kept, const std::vector<std::string>& expired) {
        std::vector<std::string> words = sweep_command({{}, kept, expired}, root.string());
        std::vector<char*> arguments;
        for (std::string& word : words) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
        int status = -1;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    bool exists(const std::string& name) const { return fs::exists(root / name); }

    test::TempFolder folder;
    fs::path root{folder.path()};
};

TEST_F(SweepCommand, RemovesWhatIsNotKept) {
    make_directory("ml/kept");
    make_directory("ml/deleted");
    make_directory("other/deleted");
    EXPECT_EQ(sweep({"ml/kept"}, {}), 0);
    EXPECT_TRUE(exists("ml/kept/segments/1.seg"));
    EXPECT_FALSE(exists("ml/deleted"));
    EXPECT_FALSE(exists("other/deleted"));
}

TEST_F(SweepCommand, LeavesWhatIsYoungUnlessItsDatasetIsKnownToBeDue) {
    make_directory("ml/young", false);
    make_directory("ml/due", false);
    EXPECT_EQ(sweep({}, {"due"}), 0);
    EXPECT_TRUE(exists("ml/young"));
    EXPECT_FALSE(exists("ml/due"));
}

TEST_F(SweepCommand, LeavesADirectoryThatASidecarLeads) {
    make_directory("ml/led");
    const int lock = ::open((root / "ml/led/lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(sweep({}, {"led"}), 0);
    EXPECT_TRUE(exists("ml/led/segments/1.seg"));
    ::close(lock);
    EXPECT_EQ(sweep({}, {"led"}), 0);
    EXPECT_FALSE(exists("ml/led"));
}

TEST_F(SweepCommand, LeavesWhatIsNotOurs) {
    fs::create_directories(root / "home/photos/segments");
    std::ofstream(root / "home/notes") << "mine";
    fs::last_write_time(root / "home/photos", fs::file_time_type::clock::now() - hours{2000});
    make_directory("deep/er/d1");
    EXPECT_EQ(sweep({}, {"photos", "d1"}), 0);
    EXPECT_TRUE(exists("home/photos"));
    EXPECT_TRUE(exists("home/notes"));
    EXPECT_TRUE(exists("deep/er/d1/lock")) << "a node directory is two levels down";
}

TEST_F(SweepCommand, AnEmptyPoolIsNoTrouble) {
    EXPECT_EQ(sweep({}, {}), 0);
    EXPECT_TRUE(fs::exists(root));
}

}  // namespace
}  // namespace stoker::control
