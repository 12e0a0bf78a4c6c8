#include "common/domain/block_format.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/manifest_writer.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

using testing::HasSubstr;

std::vector<ListedObject> blocks_of(const std::vector<ListedObject>& objects, std::uint64_t bytes) {
    return list_blocks(Listing::of(objects).value(), Bytes{bytes}).value().objects();
}

std::vector<std::uint64_t> sizes_of(std::uint64_t object_bytes, std::uint64_t block_bytes) {
    std::vector<std::uint64_t> sizes;
    for (const ListedObject& block : blocks_of({{"a", object_bytes, "e"}}, block_bytes)) {
        sizes.push_back(block.size_bytes);
    }
    return sizes;
}

TEST(BlockFormat, BlocksAreAlignedAndTheLastOneIsTheRest) {
    using Sizes = std::vector<std::uint64_t>;
    EXPECT_EQ(sizes_of(0, 10), (Sizes{0}));
    EXPECT_EQ(sizes_of(1, 10), (Sizes{1}));
    EXPECT_EQ(sizes_of(10, 10), (Sizes{10}));
    EXPECT_EQ(sizes_of(11, 10), (Sizes{10, 1}));
    EXPECT_EQ(sizes_of(20, 10), (Sizes{10, 10}));
    EXPECT_EQ(sizes_of(29, 10), (Sizes{10, 10, 9}));
}

TEST(BlockFormat, AnObjectOfOneBlockStaysUnchanged) {
    const std::vector<ListedObject> small{{"a", 10, "e"}, {"b", 0, "f"}};
    EXPECT_EQ(blocks_of(small, 10), small);
}

TEST(BlockFormat, ABlocksKeyAndETagGiveItsPlaceInTheObject) {
    const auto blocks = blocks_of({{"dir/a", 25, "e:1"}}, 10);
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(
        blocks[2].key,
        "dir/a\x01"
        "00000002");
    EXPECT_EQ(object_key_of(blocks[2].key), "dir/a");
    const auto place = parse_block_place(blocks[2].etag);
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(*place, (BlockPlace{2, 10, 25, "e:1"}));
    EXPECT_EQ(place->offset(), 20U);
    EXPECT_EQ(place->size_bytes(), 5U);
    EXPECT_EQ(place->block_count(), 3U);
}

TEST(BlockFormat, RejectsInvalidBlockPlaces) {
    for (const char* text :
         {"",
          "etag",
          "block:",
          "block:0:10:25:",
          "block:3:10:25:e",
          "block:0:0:25:e",
          "block:0:10:0:e",
          "block:-1:10:25:e",
          "block:0:10:25e",
          "block:4294967296:1:5000000000:e",
          "block:0:99999999999999999999:25:e",
          "Block:0:10:25:e"}) {
        EXPECT_EQ(parse_block_place(text), std::nullopt) << text;
    }
}

TEST(BlockFormat, AnOriginETagThatLooksLikeABlockPlaceIsKept) {
    const ListedObject odd{"a", 5, "block:0:10:25:e"};
    const auto blocks = blocks_of({odd}, 10);
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(parse_block_place(blocks[0].etag), (BlockPlace{0, 10, 5, "block:0:10:25:e"}));
    const auto bytes = encode_manifest(blocks).value();
    const auto manifest = ManifestView::open(bytes).value();
    const StoredObject object = object_of(manifest, SampleId{0});
    EXPECT_EQ(object.etag, odd.etag);
    EXPECT_EQ(object.key, odd.key);
    EXPECT_EQ(object.size_bytes, odd.size_bytes);
}

TEST(BlockFormat, RejectsObjectKeysThatLookLikeBlockKeys) {
    const auto listed = list_blocks(
        Listing::of({{"a\x01"
                      "00000000",
                      5,
                      "e"}})
            .value(),
        Bytes{10});
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(listed.error().message, HasSubstr("U+0001"));
}

TEST(BlockFormat, EverySampleOfAManifestBelongsToItsObject) {
    Prng random{test::seed()};
    for (int round = 0; round < 100; ++round) {
        std::vector<ListedObject> objects;
        const std::uint64_t block_bytes = 1 + random.below(50);
        for (std::uint64_t at = 0; at < 1 + random.below(20); ++at) {
            const std::string key = "k" + std::string(random.below(3), 'a') + std::to_string(at);
            objects.push_back({key, random.below(300), "etag-" + std::to_string(at)});
        }
        const auto bytes = encode_manifest(blocks_of(objects, block_bytes)).value();
        const auto manifest = ManifestView::open(bytes).value();
        std::ranges::sort(objects, {}, &ListedObject::key);
        std::uint64_t id = 0;
        for (const ListedObject& wanted : objects) {
            const StoredObject object = object_of(manifest, SampleId{id});
            EXPECT_EQ(
                (ListedObject{
                    std::string{object.key}, object.size_bytes, std::string{object.etag}}),
                wanted);
            std::uint64_t sum = 0;
            for (std::uint64_t part = id; part < id + object.sample_count; ++part) {
                EXPECT_EQ(object_of(manifest, SampleId{part}), object);
                sum += manifest.size_bytes(SampleId{part});
            }
            EXPECT_EQ(sum, wanted.size_bytes);
            id += object.sample_count;
        }
        EXPECT_EQ(id, manifest.sample_count());
    }
}

TEST(BlockFormat, BlocksOfAnIncompleteObjectAreSeparateObjects) {
    auto blocks = blocks_of({{"a", 25, "e"}, {"b", 25, "e"}}, 10);
    blocks.erase(blocks.begin() + 1);
    const auto bytes = encode_manifest(blocks).value();
    const auto manifest = ManifestView::open(bytes).value();
    EXPECT_EQ(object_of(manifest, SampleId{0}).sample_count, 1U);
    EXPECT_EQ(object_of(manifest, SampleId{0}).key, blocks[0].key);
    EXPECT_EQ(object_of(manifest, SampleId{1}).sample_count, 1U);
    EXPECT_EQ(object_of(manifest, SampleId{3}).sample_count, 3U);
}

}  // namespace
}  // namespace stoker::domain
