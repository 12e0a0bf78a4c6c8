#include "client/src/core/bus_guard.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "client/src/core/mapped_file.h"
#include "common/base/crc32c.h"
#include "tests/support/temp_folder.h"

namespace stoker::client {
namespace {

constexpr std::size_t kPages = 4;

class BusGuardTest : public ::testing::Test {
protected:
    BusGuardTest() {
        install_bus_guard();
        std::ofstream{path_} << std::string(kPages * page_, 'x');
        file_ = MappedFile::open(path_).value();
    }

    void cut(std::size_t pages) { std::filesystem::resize_file(path_, pages * page_); }

    [[nodiscard]] std::span<const std::byte> page(std::size_t number, std::size_t count = 1) const {
        return file_.bytes().subspan(number * page_, count * page_);
    }

    [[nodiscard]] bool is_readable(std::size_t number, std::size_t count = 1) const {
        std::vector<std::byte> to(count * page_);
        return read_guarded(page(number, count), to.data());
    }

    const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    test::TempFolder folder_;
    const std::string path_ = folder_.path() + "/file";
    MappedFile file_;
};

TEST_F(BusGuardTest, ReadsMappedBytes) {
    std::vector<std::byte> to(page_);
    ASSERT_TRUE(read_guarded(page(1), to.data()));
    EXPECT_EQ(to, std::vector(page_, std::byte{'x'}));
    EXPECT_EQ(crc32c_guarded(page(0, kPages)), crc32c(page(0, kPages)));
    EXPECT_EQ(
        load_guarded(reinterpret_cast<const std::uint64_t*>(page(2).data())), 0x7878787878787878U);
}

TEST_F(BusGuardTest, ReturnsNothingForTruncatedPages) {
    cut(2);
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(is_readable(0, 2));
        EXPECT_FALSE(is_readable(1, 2));
        EXPECT_FALSE(crc32c_guarded(page(0, kPages)).has_value());
        EXPECT_FALSE(load_guarded(reinterpret_cast<const std::uint64_t*>(page(3).data())));
    }
}

TEST_F(BusGuardTest, EachThreadFailsOnItsOwn) {
    cut(2);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this, &wrong, i] {
            for (int round = 0; round < 200; ++round) {
                wrong += is_readable(static_cast<std::size_t>(i)) == (i < 2) ? 0 : 1;
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
}

using BusGuardDeathTest = BusGuardTest;

void touch(std::span<const std::byte> bytes) {
    static_cast<void>(*static_cast<const volatile std::byte*>(bytes.data()));
}

TEST_F(BusGuardDeathTest, AnUnguardedReadStillDies) {
    cut(2);
    EXPECT_EXIT(touch(page(3)), ::testing::KilledBySignal(SIGBUS), "");
    EXPECT_EXIT(::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}

void exit_with_7(int /*signal*/) {
    ::_exit(7);
}

TEST_F(BusGuardDeathTest, AnUnguardedReadReachesThePreviousHandler) {
    cut(2);
    const auto with_handlers = [this] {
        std::signal(SIGBUS, exit_with_7);
        install_bus_guard();
        static_cast<void>(is_readable(3));
        touch(page(3));
    };
    EXPECT_EXIT(with_handlers(), ::testing::ExitedWithCode(7), "");
}

struct sigaction ours {};

// Acts like Python's faulthandler: writes a message, restores the previous handler, raises again.
void restore_and_raise(int signal) {
    ::sigaction(signal, &ours, nullptr);
    ::raise(signal);
}

TEST_F(BusGuardDeathTest, AHandlerInstalledOverOursCanRestoreIt) {
    cut(2);
    const auto with_theirs_on_top = [this] {
        struct sigaction theirs {};
        theirs.sa_handler = restore_and_raise;
        theirs.sa_flags = SA_NODEFER;
        ::sigaction(SIGBUS, &theirs, &ours);
        std::_Exit(is_readable(3) ? 1 : 0);
    };
    EXPECT_EXIT(with_theirs_on_top(), ::testing::ExitedWithCode(0), "");
}

TEST_F(BusGuardDeathTest, HandlersThatCallEachOtherEndTheProcess) {
    cut(2);
    const auto in_a_circle = [this] {
        struct sigaction theirs {};
        theirs.sa_handler = restore_and_raise;
        theirs.sa_flags = SA_NODEFER;
        ::sigaction(SIGBUS, &theirs, &ours);
        install_bus_guard();  // installs ours over theirs, which restores ours
        touch(page(3));
    };
    EXPECT_EXIT(in_a_circle(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace stoker::client
