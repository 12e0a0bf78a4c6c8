#include "cli/stoker/pack_options.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

std::string error_of(std::vector<std::string_view> words) {
    const auto command = parse_pack(words);
    return command ? "" : command.error().message;
}

TEST(PackOptions, RefuseADestinationInsideTheSource) {
    EXPECT_EQ(error_of({"/data", "/data/packed"}), "DST lies inside SRC");
    EXPECT_EQ(error_of({"file:///data", "file:////data/packed"}), "DST lies inside SRC");
    EXPECT_EQ(error_of({"s3://b", "s3://b/packed", "--endpoint=http://m"}), "DST lies inside SRC");
    EXPECT_EQ(
        error_of({"s3://b", "s3://b/packed", "--endpoint=http://m", "--from-endpoint=http://m/"}),
        "DST lies inside SRC");
    EXPECT_EQ(
        error_of({"s3://b", "s3://b/packed", "--endpoint=http://m", "--from-endpoint=http://n"}),
        "");
    EXPECT_EQ(error_of({"/data", "/packed", "--endpoint=http://m"}), "");
}

}  // namespace
}  // namespace stoker::cli
