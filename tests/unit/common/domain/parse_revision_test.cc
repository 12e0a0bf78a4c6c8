#include "common/domain/parse_revision.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(ParseRevision, InvertsToString) {
    for (const std::uint64_t value : {0UL, 0xBEEFUL, ~0UL}) {
        EXPECT_EQ(parse_revision(to_string(RevisionId{value})), RevisionId{value});
    }
}

TEST(ParseRevision, RejectsOtherSpellings) {
    for (const char* digits :
         {"",
          "beef",
          "000000000000beef0",
          "000000000000BEEF",
          "000000000000beeg",
          " 00000000000beef",
          "-00000000000beef",
          "0x0000000000beef"}) {
        EXPECT_EQ(parse_revision(digits), std::nullopt) << digits;
    }
}

}  // namespace
}  // namespace stoker::domain
