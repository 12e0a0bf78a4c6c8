#include "common/base/read_file.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

class ReadFile : public testing::Test {
protected:
    std::string written(const std::string& text) {
        const std::string path = folder_.path() + "/file";
        std::ofstream{path, std::ios::binary} << text;
        return path;
    }

    [[nodiscard]] std::string nowhere() const { return folder_.path() + "/nowhere"; }

private:
    test::TempFolder folder_;
};

TEST_F(ReadFile, ReturnsEveryByte) {
    const std::string text{"a\0b\r\n", 5};
    EXPECT_EQ(*read_file(written(text)), text);
    EXPECT_EQ(*read_file(written("")), "");
    EXPECT_EQ(read_file(nowhere()).error().message, "cannot read " + nowhere());
}

TEST_F(ReadFile, ReadFilledFileRemovesTrailingWhiteSpaceAndRefusesEmptyFiles) {
    EXPECT_EQ(*read_filled_file(written(" token \r\n\n")), " token");
    EXPECT_EQ(read_filled_file(written(" \n")).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(read_filled_file(nowhere()).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace stoker
