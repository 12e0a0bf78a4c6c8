#include "sidecar/attached/find_object.h"

#include <gtest/gtest.h>

#include "tests/support/manifest_of.h"

namespace stoker::attached {
namespace {

using test::blocks_of;
using test::Manifest;
using test::manifest_of;

TEST(FindObject, FindsObjects) {
    const Manifest manifest = manifest_of({"a", "b/c", "b/d"});
    EXPECT_EQ(find_object(manifest.view, "b/c").value().first, domain::SampleId{1});
    for (const char* absent : {"", "b", "b/", "b/cc", "c"}) {
        EXPECT_EQ(find_object(manifest.view, absent), std::nullopt) << absent;
    }
}

TEST(FindObject, FindsObjectsOfBlocks) {
    const Manifest manifest = blocks_of({{"a", 25}, {"a-", 5}, {"b/c", 20}}, 10);
    const auto object = find_object(manifest.view, "b/c");
    ASSERT_TRUE(object.has_value());
    EXPECT_EQ(object->first, domain::SampleId{4});
    EXPECT_EQ(object->sample_count, 2U);
    EXPECT_EQ(object->size_bytes, 20U);
    EXPECT_EQ(object->etag, "etag");
    for (const char* absent :
         {"",
          "b",
          "a\x01",
          "a\x01"
          "00000000",
          "a\x01"
          "00000001",
          "c"}) {
        EXPECT_EQ(find_object(manifest.view, absent), std::nullopt) << absent;
    }
}

}  // namespace
}  // namespace stoker::attached
