// A run's timeline as text.
#include "tests/world/timeline.h"

#include <gtest/gtest.h>

namespace stoker::world {
namespace {

using std::chrono::seconds;

TEST(Timeline, TellsTwoLeadsOfOneProcessApart) {
    Timeline timeline;
    timeline.moments = {
        {.at = seconds{1}, .node = "node-0", .leader = "sidecar-0#1", .lead = 1, .is_ready = true},
        {.at = seconds{3}, .node = "node-0", .leader = "sidecar-0#1", .lead = 2}};
    const std::string text = timeline.text();
    EXPECT_NE(text.find("sidecar-0#1 leads (lead 1);"), std::string::npos) << text;
    EXPECT_NE(text.find("sidecar-0#1 leads (lead 2), without the listing;"), std::string::npos)
        << text;
}

TEST(Timeline, TellsWhenNobodyLeads) {
    Timeline timeline;
    timeline.moments = {
        {.at = seconds{1}, .node = "node-0", .leader = "sidecar-0#1", .lead = 1, .is_ready = true},
        {.at = seconds{3}, .node = "node-0", .leader = ""}};
    EXPECT_NE(timeline.text().find("     3.0 node-0   nobody leads"), std::string::npos);
}

}  // namespace
}  // namespace stoker::world
