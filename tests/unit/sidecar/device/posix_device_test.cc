#include "sidecar/device/posix_device.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status write_text(DeviceFile& file, std::uint64_t offset, std::string_view text) {
    const std::array<DeviceFile::ConstBuffer, 1> parts{bytes_of(text)};
    return file.write(offset, parts);
}

class PosixDeviceTest : public ::testing::Test {
protected:
    std::string path(std::string_view name) { return join_path(folder_.path(), name); }

    test::TempFolder folder_;
    std::unique_ptr<Device> device_ = make_posix_device();
};

TEST_F(PosixDeviceTest, WritesTheGivenBuffersContiguously) {
    const auto file = device_->create(path("a")).value();
    const std::array<DeviceFile::ConstBuffer, 4> parts{
        bytes_of("one "), bytes_of(""), bytes_of("two "), bytes_of("three")};
    ASSERT_TRUE(file->write(3, parts).has_value());
    EXPECT_EQ(file->size_bytes().value(), 16U);
    EXPECT_EQ(
        text_of(read_file(*device_, path("a"), 100).value()),
        std::string(3, '\0') + "one two three");
    EXPECT_EQ(device_->counters().written_bytes, 13U);
}

TEST_F(PosixDeviceTest, ReadsLessOnlyAtTheEnd) {
    const auto file = device_->create(path("a")).value();
    ASSERT_TRUE(write_text(*file, 0, "0123456789").has_value());
    std::vector<std::byte> out(4);
    EXPECT_EQ(file->read(2, out).value(), 4U);
    EXPECT_EQ(text_of(out), "2345");
    EXPECT_EQ(file->read(8, out).value(), 2U);
    EXPECT_EQ(file->read(50, out).value(), 0U);
}

TEST_F(PosixDeviceTest, FilesAreWorldReadableWhateverTheUmask) {
    const mode_t before = ::umask(0077);
    const auto file = device_->create(path("a"));
    const auto folder = device_->make_folder(path("d"));
    ::umask(before);
    ASSERT_TRUE(file.has_value() && folder.has_value());

    struct stat about {};

    ASSERT_EQ(::stat(path("a").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0644U);
    ASSERT_EQ(::stat(path("d").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0755U);
}

TEST_F(PosixDeviceTest, FolderForItsUserOnlyIsClosedToOthersEvenIfItExisted) {
    const auto mode_of = [](const std::string& path) {
        struct stat about {};

        return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 0777U : 0U;
    };
    ASSERT_TRUE(device_->make_folder(path("n/control"), Access::kOwner).has_value());
    EXPECT_EQ(mode_of(path("n")), 0755U);
    EXPECT_EQ(mode_of(path("n/control")), 0700U);
    ASSERT_TRUE(device_->make_folder(path("open")).has_value());
    ASSERT_TRUE(device_->make_folder(path("open"), Access::kOwner).has_value());
    EXPECT_EQ(mode_of(path("open")), 0700U);
}

TEST_F(PosixDeviceTest, CreateRefusesATakenName) {
    ASSERT_TRUE(device_->create(path("a")).has_value());
    EXPECT_EQ(device_->create(path("a")).error().code, ErrorCode::kAlreadyExists);
}

TEST_F(PosixDeviceTest, NamesAMissingFile) {
    const auto result = device_->open(path("gone"));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
    EXPECT_NE(result.error().message.find("gone: No such file"), std::string::npos);
    EXPECT_EQ(device_->unlink(path("gone")).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(device_->counters().errors, 0U);
}

TEST_F(PosixDeviceTest, AMapSharesTheFile) {
    const auto file = device_->create(path("a")).value();
    ASSERT_TRUE(file->allocate(8192).has_value());
    const auto writer = device_->map(path("a"), MapMode::kReadWrite).value();
    const auto reader = device_->map(path("a"), MapMode::kRead).value();
    ASSERT_EQ(writer->writable_bytes().size(), 8192U);
    EXPECT_TRUE(reader->writable_bytes().empty());
    writer->writable_bytes()[5000] = std::byte{42};
    EXPECT_EQ(reader->bytes()[5000], std::byte{42});
    std::vector<std::byte> out(1);
    ASSERT_EQ(file->read(5000, out).value(), 1U);
    EXPECT_EQ(out[0], std::byte{42});
}

TEST_F(PosixDeviceTest, AMapOutlivesItsName) {
    ASSERT_TRUE(write_text(*device_->create(path("a")).value(), 0, "still here").has_value());
    const auto map = device_->map(path("a"), MapMode::kRead).value();
    ASSERT_TRUE(device_->unlink(path("a")).has_value());
    EXPECT_EQ(text_of(map->bytes()), "still here");
}

TEST_F(PosixDeviceTest, CannotMapAnEmptyFile) {
    ASSERT_TRUE(device_->create(path("a")).has_value());
    EXPECT_EQ(device_->map(path("a"), MapMode::kRead).error().code, ErrorCode::kCorruption);
}

TEST_F(PosixDeviceTest, ListsNamesInOrder) {
    for (const char* name : {"c", "a", "b"}) {
        ASSERT_TRUE(device_->create(path(name)).has_value());
    }
    EXPECT_EQ(device_->list(folder_.path()).value(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(PosixDeviceTest, MakesMissingParents) {
    ASSERT_TRUE(device_->make_folder(path("x/y/z")).has_value());
    ASSERT_TRUE(device_->make_folder(path("x/y/z")).has_value());
    EXPECT_TRUE(device_->create(path("x/y/z/file")).has_value());
}

TEST_F(PosixDeviceTest, ReplaceFileLeavesNoTemporary) {
    for (const char* text : {"first", "second"}) {
        ASSERT_TRUE(
            replace_file(*device_, path("a"), bytes_of(text), Durability::kPower).has_value());
        EXPECT_EQ(text_of(read_file(*device_, path("a"), 100).value()), text);
    }
    EXPECT_EQ(device_->list(folder_.path()).value(), (std::vector<std::string>{"a"}));
}

TEST_F(PosixDeviceTest, ReadFileRefusesMoreThanItsLimit) {
    ASSERT_TRUE(write_text(*device_->create(path("a")).value(), 0, "123456").has_value());
    EXPECT_EQ(read_file(*device_, path("a"), 5).error().code, ErrorCode::kCorruption);
}

TEST_F(PosixDeviceTest, ReportsSpace) {
    const DeviceSpace space = device_->space(folder_.path()).value();
    EXPECT_GT(space.total, Bytes::zero());
    EXPECT_LE(space.available, space.total);
}

TEST_F(PosixDeviceTest, ReadAheadHintsDoNotChangeWhatIsRead) {
    const auto file = device_->create(path("a")).value();
    ASSERT_TRUE(write_text(*file, 0, std::string(500'000, 'x')).has_value());
    file->will_need(0, 500'000);
    file->wont_need(0, 500'000);
    file->will_need(1ULL << 40U, 500'000);
    std::vector<std::byte> out(500'000);
    EXPECT_EQ(file->read(0, out).value(), out.size());
}

TEST_F(PosixDeviceTest, ALockExcludesAndEndsWithItsOwner) {
    auto first = device_->try_lock(path("lock")).value();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(device_->try_lock(path("lock")).value(), nullptr);
    first.reset();
    EXPECT_NE(device_->try_lock(path("lock")).value(), nullptr);
}

TEST_F(PosixDeviceTest, ALockDiesWithItsProcess) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto lock = device_->try_lock(path("lock"));
        const char done = lock.has_value() && *lock != nullptr ? 'y' : 'n';
        static_cast<void>(::write(ready[1], &done, 1));
        ::pause();
        ::_exit(0);
    }
    char done = 0;
    ASSERT_EQ(::read(ready[0], &done, 1), 1);
    ASSERT_EQ(done, 'y');
    EXPECT_EQ(device_->try_lock(path("lock")).value(), nullptr);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_NE(device_->try_lock(path("lock")).value(), nullptr);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_F(PosixDeviceTest, ALockOnADeletedNameExcludesNothing) {
    const auto orphan = device_->try_lock(path("lock")).value();
    ASSERT_TRUE(device_->unlink(path("lock")).has_value());
    const auto fresh = device_->try_lock(path("lock")).value();
    EXPECT_NE(fresh, nullptr);
    EXPECT_EQ(device_->try_lock(path("lock")).value(), nullptr);
}

}  // namespace
}  // namespace stoker::sidecar
