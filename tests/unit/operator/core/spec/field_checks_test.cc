#include "operator/core/spec/field_checks.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

TEST(IsDnsLabel, FollowsRfc1123) {
    const std::vector<std::string> right = {"a", "0", "a-b", "train-1", std::string(63, 'x')};
    for (const std::string& label : right) {
        EXPECT_TRUE(is_dns_label(label)) << label;
    }
    const std::vector<std::string> wrong = {
        "", "-a", "a-", "A", "a.b", "a_b", "\u00fc", std::string(64, 'x')};
    for (const std::string& label : wrong) {
        EXPECT_FALSE(is_dns_label(label)) << label;
    }
}

TEST(HasDotPart, ComparesWholeComponents) {
    for (const std::string path : {".", "..", "a/..", "../a", "a/./b", "/..", "/../"}) {
        EXPECT_TRUE(has_dot_part(path)) << path;
    }
    for (const std::string path : {"", "/", "a", "...", "a..b", ".a", "a./b", "a//b"}) {
        EXPECT_FALSE(has_dot_part(path)) << path;
    }
}

TEST(Overlap, FollowsDots) {
    for (const std::string path :
         {"/data",
          "/data/train/x",
          "//data/./train",
          "/x/../data/train",
          "/../data/train",
          "/data/train/x/..",
          "/"}) {
        EXPECT_TRUE(overlap("/data/train", path)) << path;
    }
    for (const std::string path : {"/data/training", "/data/val", "/data/train/../val", "/train"}) {
        EXPECT_FALSE(overlap("/data/train", path)) << path;
    }
}

TEST(Complaints, KeepOrderAndOnlyBrokenRules) {
    Complaints complaints;
    complaints.unless(true, "a", "x");
    complaints.unless(false, "b", "y");
    complaints.unless(false, "c", "z");
    EXPECT_EQ(to_string(complaints.take()), "b: y; c: z");
    EXPECT_TRUE(complaints.take().empty());
}

}  // namespace
}  // namespace stoker::control
