#include "client/src/core/mapped_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

}  // namespace
}  // namespace stoker::client
