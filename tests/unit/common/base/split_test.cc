#include "common/base/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
    EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
}

TEST(Split, EmptyTextHasOnePart) {
    EXPECT_THAT(split("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace stoker
