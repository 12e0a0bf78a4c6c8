#include "common/domain/source_place.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

bool lies_in_server(const std::string& inner, const std::string& outer) {
    return lies_in({"s3://b/packed", inner}, {"s3://b", outer});
}

bool lies_in_folder(const std::string& inner, const std::string& outer) {
    return lies_in({inner, ""}, {outer, ""});
}

TEST(SourcePlace, ComparesServersByHostAndPort) {
    EXPECT_TRUE(lies_in_server("http://m:9000", "http://m:9000/"));
    EXPECT_TRUE(lies_in_server("http://M", "http://m:80"));
    EXPECT_TRUE(lies_in_server("https://m:443", "https://m/"));
    EXPECT_FALSE(lies_in_server("http://m:9000", "http://m:9001"));
    EXPECT_FALSE(lies_in_server("http://m:9000", "http://n:9000"));
}

TEST(SourcePlace, AmazonsRegionsAreOneServer) {
    EXPECT_TRUE(lies_in_server("", "https://s3.us-east-1.amazonaws.com"));
    EXPECT_TRUE(lies_in_server("https://s3.eu-west-1.amazonaws.com/", ""));
    EXPECT_FALSE(lies_in_server("", "http://m:9000"));
    EXPECT_FALSE(lies_in_server("", "https://amazonaws.com.example"));
}

TEST(SourcePlace, ComparesFoldersByTheirParts) {
    EXPECT_TRUE(lies_in_folder("s3://b/raw/", "s3://b/raw"));
    EXPECT_TRUE(lies_in_folder("s3://b/raw/packed", "s3://b/raw/"));
    EXPECT_FALSE(lies_in_folder("s3://b/rawer", "s3://b/raw"));
    EXPECT_FALSE(lies_in_folder("s3://b", "s3://b/raw"));
    EXPECT_FALSE(lies_in_folder("s3://b//raw", "s3://b/raw")) << "two keys";
    EXPECT_TRUE(lies_in_folder("file:////data//x", "file:///data/"));
    EXPECT_TRUE(lies_in_folder("file:///data", "file:////"));
    EXPECT_FALSE(lies_in_folder("file:///data", "s3://data"));
}

}  // namespace
}  // namespace stoker::domain
