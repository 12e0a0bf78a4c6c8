#include "common/domain/range_place.h"

#include <gtest/gtest.h>

#include "common/domain/manifest_rules.h"

namespace stoker::domain {
namespace {

constexpr std::string_view kKey = "train/a.tar/n01/0001";  // the object's key has 11 bytes

TEST(RangePlace, ReadsBack) {
    const RangePlace place{4096, 1U << 30U, 11, "e:1"};
    const std::string etag = encode_range_place(place);
    EXPECT_EQ(etag, "range:4096:1073741824:11:e:1");
    EXPECT_EQ(parse_range_place(kKey, etag), place);
    EXPECT_EQ(place.object_key(kKey), "train/a.tar");
    EXPECT_EQ(place.name(kKey), "n01/0001");
}

TEST(RangePlace, HasAChecksumWhereTheObjectHasOne) {
    const RangePlace place{4096, 1U << 30U, 11, "e:1", 0x1A2B};
    const std::string etag = encode_range_place(place);
    EXPECT_EQ(etag, "crc32c:00001a2b:range:4096:1073741824:11:e:1");
    EXPECT_EQ(parse_range_place(kKey, etag), place);
    EXPECT_EQ(parse_range_place(kKey, "crc32c:x:range:0:10:11:e"), std::nullopt);
    EXPECT_EQ(parse_range_place(kKey, "crc32c:1:0:10:11:e"), std::nullopt);
}

TEST(RangePlace, OtherEtagsAndForeignKeysAreNoPlaces) {
    for (const std::string_view etag :
         {"",
          "e",
          "range:",
          "range:0:10:11:",
          "range:10:10:11:e",
          "range:0:10:0:e",
          "range:0:10:70000:e",
          "range:-1:10:11:e",
          "range:0:10:20:e",
          "block:0:10:11:e"}) {
        EXPECT_EQ(parse_range_place(kKey, etag), std::nullopt) << etag;
    }
    EXPECT_TRUE(parse_range_place(kKey, "range:0:10:11:e").has_value());
    for (const std::string_view key : {"", "train/a.tar", "train/a.tar/", "train/a_tar_n01"}) {
        EXPECT_EQ(parse_range_place(key, "range:0:10:11:e"), std::nullopt) << key;
    }
}

TEST(RangePlace, LabelIsTheFolderInTheShard) {
    EXPECT_EQ(label_folder(kKey, "range:0:10:11:e"), "n01");
    EXPECT_EQ(label_folder("train/a.tar/0001", "range:0:10:11:e"), "");
    EXPECT_EQ(label_folder("train/a.tar/0001", "e"), "a.tar");
}

}  // namespace
}  // namespace stoker::domain
