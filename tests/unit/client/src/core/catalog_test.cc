#include "client/src/core/catalog.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/node_directory.h"
#include "tests/support/temp_folder.h"

namespace stoker::client {
namespace {

std::vector<domain::ListedObject> objects() {
    return {{"b/1", 3, "e"}, {"a/1", 2, "f"}};
}

TEST(Catalog, AListingGivesTheIdsAndRevisionOfTheSidecarsManifest) {
    const test::TempFolder folder;
    const test::NodeDirectory node{folder.path(), objects()};
    const auto path = folder.path() + "/manifest." + domain::to_string(node.revision());
    const auto mapped = Catalog::open(path).value();
    const auto built = Catalog::build(objects()).value();
    EXPECT_EQ(built->manifest().revision(), node.revision());
    EXPECT_EQ(mapped->manifest().revision(), node.revision());
    EXPECT_EQ(built->manifest().sample(domain::SampleId{0}).key, "a/1");
    EXPECT_TRUE(std::ranges::equal(built->bytes(), mapped->bytes()));
}

TEST(Catalog, RoundTripsThroughBytes) {
    const auto built = Catalog::build(objects()).value();
    const auto bytes = built->bytes();
    const auto copy = Catalog::from_bytes({bytes.begin(), bytes.end()}).value();
    EXPECT_EQ(copy->manifest().sample(domain::SampleId{1}).key, "b/1");
}

TEST(Catalog, RefusesDamagedBytes) {
    const auto built = Catalog::build(objects()).value();
    std::vector<std::byte> bytes{built->bytes().begin(), built->bytes().end()};
    bytes.at(140) ^= std::byte{1};
    EXPECT_EQ(Catalog::from_bytes(bytes).error().code, ErrorCode::kCorruption);
}

TEST(Catalog, AnErrorNamesTheFile) {
    const test::TempFolder folder;
    const auto path = folder.path() + "/manifest.1";
    EXPECT_EQ(Catalog::open(path).error().code, ErrorCode::kNotFound);
    std::ofstream{path} << "junk";
    const Error error = Catalog::open(path).error();
    EXPECT_EQ(error.code, ErrorCode::kCorruption);
    EXPECT_NE(error.message.find(path), std::string::npos) << error.message;
}

TEST(Catalog, RefusesAnEmptyListing) {
    EXPECT_EQ(Catalog::build({}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::client
