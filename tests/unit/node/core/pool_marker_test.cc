#include "node/core/pool_marker.h"

#include <gtest/gtest.h>

namespace stoker::node {
namespace {

TEST(PoolMarker, RoundTrips) {
    EXPECT_EQ(parse_marker(format_marker("nvme")), "nvme");
    EXPECT_EQ(format_marker("nvme"), "{\"schema\":1,\"pool\":\"nvme\"}\n");
}

TEST(PoolMarker, RejectsOtherTexts) {
    for (const char* text :
         {"",
          "nvme",
          "{}",
          "{\"schema\":2,\"pool\":\"nvme\"}\n",
          "{\"schema\":1,\"pool\":\"nvme\"}",
          "{\"schema\":1,\"pool\":\"\"}\n",
          "{\"schema\":1,\"pool\":\"a\",\"b\":\"c\"}\n"}) {
        EXPECT_EQ(parse_marker(text), std::nullopt) << text;
    }
}

TEST(ForeignEntries, ExcludeAMarkerThatWasNotFinished) {
    EXPECT_TRUE(foreign_entries({{".stoker-pool.new", false}}).empty());
}

TEST(ForeignEntries, ExcludeLostAndFoundAndOldNodeDirectories) {
    EXPECT_TRUE(foreign_entries({}).empty());
    EXPECT_TRUE(foreign_entries({{"lost+found", false}, {"team", true}}).empty());
    EXPECT_EQ(
        foreign_entries({{"team", true}, {"home", false}, {"x", false}}),
        (std::vector<std::string>{"home", "x"}));
}

}  // namespace
}  // namespace stoker::node
