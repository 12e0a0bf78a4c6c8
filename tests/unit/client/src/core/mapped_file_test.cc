#include "client/src/core/mapped_file.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace stoker::client {
namespace {

class MappedFileTest : public testing::Test {
protected:
    std::string write(const std::string& text) {
        std::string path = folder_.path() + "/file";
        std::ofstream{path} << text;
        return path;
    }

    test::TempFolder folder_;
};

std::string text_of(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, HasTheBytesOfTheFile) {
    EXPECT_EQ(text_of(MappedFile::open(write("hello")).value()), "hello");
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
    EXPECT_TRUE(MappedFile::open(write("")).value().bytes().empty());
}

TEST_F(MappedFileTest, OutlivesTheFile) {
    const std::string path = write("hello");
    const auto file = MappedFile::open(path).value();
    std::filesystem::remove(path);
    EXPECT_EQ(text_of(file), "hello");
    EXPECT_FALSE(file.is_same_file_as(path));
}

TEST_F(MappedFileTest, DistinguishesAReplacedFileFromItsOwn) {
    const std::string path = write("hello");
    const auto file = MappedFile::open(path).value();
    EXPECT_TRUE(file.is_same_file_as(path));
    std::filesystem::rename(path, path + ".old");
    write("other");
    EXPECT_FALSE(file.is_same_file_as(path));
}

TEST_F(MappedFileTest, MovingKeepsTheAddressOfTheBytes) {
    auto file = MappedFile::open(write("hello")).value();
    const auto* data = file.bytes().data();
    MappedFile other = std::move(file);
    file = MappedFile{};
    EXPECT_EQ(other.bytes().data(), data);
    EXPECT_EQ(text_of(other), "hello");
}

TEST_F(MappedFileTest, AMissingFileIsNotFound) {
    EXPECT_EQ(MappedFile::open(folder_.path() + "/none").error().code, ErrorCode::kNotFound);
}

TEST_F(MappedFileTest, KnowsWhichPagesAreReadable) {
    const UniqueFd fd{::open(write(std::string(5000, 'x')).c_str(), O_RDONLY | O_CLOEXEC)};
    const auto file = MappedFile::map(fd.get(), 1 << 20, "file").value();
    EXPECT_TRUE(MappedFile::is_readable(file.bytes().first(5000)));
    EXPECT_TRUE(MappedFile::is_readable(file.bytes().subspan(4990, 10)));
    EXPECT_FALSE(MappedFile::is_readable(file.bytes().subspan(3 * 65536, 10)));
}

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
        return copy_guarded(page(number, count), to, to.size()).has_value();
    }

    const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    test::TempFolder folder_;
    const std::string path_ = folder_.path() + "/file";
    MappedFile file_;
};

TEST_F(BusGuardTest, ReadsMappedBytes) {
    std::vector<std::byte> to(page_);
    ASSERT_TRUE(copy_guarded(page(1), to, to.size()));
    EXPECT_EQ(to, std::vector(page_, std::byte{'x'}));
    EXPECT_EQ(copy_guarded(page(0, kPages), {}, 0), crc32c(page(0, kPages)));
    EXPECT_EQ(
        load_guarded(reinterpret_cast<const std::uint64_t*>(page(2).data())), 0x7878787878787878U);
}

TEST_F(BusGuardTest, CopiesTheFirstBytesAndChecksTheRest) {
    std::vector<std::byte> head(10);
    EXPECT_EQ(copy_guarded(page(0), head, 64), crc32c(page(0).subspan(64)));
    EXPECT_EQ(head, std::vector(10, std::byte{'x'}));
    cut(1);
    EXPECT_FALSE(copy_guarded(page(0, 2), head, 64).has_value()) << "cut behind the copied bytes";
    EXPECT_EQ(copy_guarded(page(0, 2), head, 2 * page_), crc32c({})) << "only the head is read";
}

TEST_F(BusGuardTest, ReturnsNothingForTruncatedPages) {
    cut(2);
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(is_readable(0, 2));
        EXPECT_FALSE(is_readable(1, 2));
        EXPECT_FALSE(copy_guarded(page(0, kPages), {}, 0).has_value());
        EXPECT_FALSE(load_guarded(reinterpret_cast<const std::uint64_t*>(page(3).data())));
    }
}

TEST_F(BusGuardTest, ABusErrorFailsOnlyTheReadOfItsThread) {
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
