#include "common/domain/node_directory.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(NodeDirectory, SegmentNamesRoundTrip) {
    EXPECT_EQ(control_folder("/n"), "/n/control");
    EXPECT_EQ(data_folder("/n"), "/n/data");
    EXPECT_EQ(segment_file(SegmentSeq{17}), "segments/17.seg");
    EXPECT_EQ(parse_segment_name("17.seg"), SegmentSeq{17});
    EXPECT_EQ(parse_segment_name("4294967295.seg"), SegmentSeq{4294967295U});
}

TEST(NodeDirectory, SegmentNameHasOneSpelling) {
    for (const char* name :
         {"",
          ".seg",
          "017.seg",
          "+1.seg",
          "-1.seg",
          "1.seg~",
          "1.tmp",
          "4294967296.seg",
          "1x.seg"}) {
        EXPECT_EQ(parse_segment_name(name), std::nullopt) << name;
    }
}

TEST(NodeDirectory, FileNamesWithTheNextSegmentNumberRoundTrip) {
    EXPECT_EQ(sequence_mark_file(4294967296), "segments/next.4294967296");
    EXPECT_EQ(parse_sequence_mark_name("next.4294967296"), 4294967296U);
    EXPECT_EQ(parse_sequence_mark_name("next."), std::nullopt);
    EXPECT_EQ(parse_sequence_mark_name("next.007"), std::nullopt);
}

TEST(NodeDirectory, RevisionNamesRoundTrip) {
    const RevisionId revision{0xDEADBEEF};
    EXPECT_EQ(manifest_file(revision), "manifest.00000000deadbeef");
    EXPECT_EQ(state_file(revision), "state.00000000deadbeef.json");
    EXPECT_EQ(parse_manifest_name(manifest_file(revision)), revision);
    EXPECT_EQ(parse_residency_name(residency_file(revision)), revision);
    EXPECT_EQ(parse_state_name(state_file(revision)), revision);
}

TEST(NodeDirectory, RejectsForeignRevisionNames) {
    for (const char* name :
         {"manifest",
          "manifest.",
          "manifest.deadbeef",
          "manifest.00000000DEADBEEF",
          "manifest.00000000deadbeef.tmp",
          "residency.00000000deadbeef"}) {
        EXPECT_EQ(parse_manifest_name(name), std::nullopt) << name;
    }
    EXPECT_EQ(parse_state_name("state.json"), std::nullopt);
}

}  // namespace
}  // namespace stoker::domain
