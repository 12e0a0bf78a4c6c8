#include "sidecar/attached/object_parts.h"

#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::attached {
namespace {

using Part = ObjectParts::Part;

constexpr domain::SampleId kFirst{7};

// An object of 25 bytes in blocks of 10: samples 7, 8 and 9.
const domain::StoredObject kObject{kFirst, 3, 25, 10, "a", "e"};

std::vector<Part> parts_of(
    const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length) {
    const ObjectParts parts{object, offset, length};
    std::vector<Part> all;
    for (std::size_t at = 0; at < parts.size(); ++at) {
        all.push_back(parts[at]);
    }
    return all;
}

domain::SampleId id(std::uint64_t number) {
    return domain::SampleId{number};
}

TEST(ObjectParts, AWholeObjectIsAllItsBlocks) {
    EXPECT_EQ(
        parts_of(kObject, 0, 25),
        (std::vector<Part>{{id(7), 10, 0, 10}, {id(8), 10, 0, 10}, {id(9), 5, 0, 5}}));
}

TEST(ObjectParts, ARangeInsideABlockIsOnePart) {
    EXPECT_EQ(parts_of(kObject, 12, 3), (std::vector<Part>{{id(8), 10, 2, 3}}));
    EXPECT_EQ(parts_of(kObject, 10, 10), (std::vector<Part>{{id(8), 10, 0, 10}}));
    EXPECT_EQ(parts_of(kObject, 24, 1), (std::vector<Part>{{id(9), 5, 4, 1}}));
}

TEST(ObjectParts, ARangeIsCutAtBlockBoundaries) {
    EXPECT_EQ(parts_of(kObject, 9, 2), (std::vector<Part>{{id(7), 10, 9, 1}, {id(8), 10, 0, 1}}));
    EXPECT_EQ(
        parts_of(kObject, 9, 16),
        (std::vector<Part>{{id(7), 10, 9, 1}, {id(8), 10, 0, 10}, {id(9), 5, 0, 5}}));
}

TEST(ObjectParts, AnObjectOfOneSampleIsOnePart) {
    const domain::StoredObject object{kFirst, 1, 25, 25, "a", "e"};
    EXPECT_EQ(parts_of(object, 3, 20), (std::vector<Part>{{id(7), 25, 3, 20}}));
}

TEST(ObjectParts, RandomRangesAddUp) {
    Prng random{test::seed()};
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t size = 1 + random.below(200);
        const std::uint64_t block = 1 + random.below(50);
        const domain::StoredObject object{kFirst, (size - 1) / block + 1, size, block, "a", "e"};
        const std::uint64_t offset = random.below(size);
        const std::uint64_t length = 1 + random.below(size - offset);
        std::uint64_t at = offset;
        for (const Part& part : parts_of(object, offset, length)) {
            const std::uint64_t block_begin = (part.id.value() - kFirst.value()) * block;
            ASSERT_EQ(block_begin + part.offset, at);
            ASSERT_GE(part.length, 1U);
            ASSERT_LE(part.offset + part.length, part.sample_bytes);
            ASSERT_EQ(part.sample_bytes, std::min(block, size - block_begin));
            at += part.length;
        }
        ASSERT_EQ(at, offset + length);
    }
}

}  // namespace
}  // namespace stoker::attached
