#include "common/domain/chunk_format.h"

#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "tests/support/mutate.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

using testing::HasSubstr;

ChunkHeader header(std::uint32_t number = 0, std::uint32_t count = 2) {
    const std::string prefix = "cat/" + std::to_string(number);
    return {
        {PackId{0x1122334455667788}, PackOrder::kRandom, 7, count},
        number,
        {{prefix + "a", 3, 0xA}, {prefix + "b", 0, 0}, {prefix + "c", 5, 0xC}}};
}

std::vector<std::byte> bytes_of(const ChunkHeader& value) {
    return encode_chunk_header(value).value();
}

std::vector<ListedObject> listing() {
    return {
        {"chunk-00000000", header(0).object_bytes(), "e0"},
        {"index", 9, "x"},
        {"chunk-00000001", header(1).object_bytes(), "e1"}};
}

template <class T>
T number_at(const std::vector<std::byte>& bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
}

void sign(std::vector<std::byte>& bytes) {
    const std::uint32_t sum = crc32c(std::span{bytes}.first(bytes.size() - sizeof(sum)));
    std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
}

// The table of docs/howto/pack.md.
TEST(ChunkFormat, BytesAreAsDocumented) {
    const auto bytes = bytes_of(header(1));
    ASSERT_EQ(bytes.size(), 64U + 3 * 24 + 3 * 6 + 4);
    EXPECT_EQ(std::memcmp(bytes.data(), "SKCHUNK1", 8), 0);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 8), 1U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 12), bytes.size());
    EXPECT_EQ(number_at<std::uint64_t>(bytes, 16), 0x1122334455667788U);
    EXPECT_EQ(number_at<std::uint64_t>(bytes, 24), 7U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 32), 1U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 36), 2U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 40), 1U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 44), 3U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 48), 18U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, 52), 0U);
    EXPECT_EQ(number_at<std::uint64_t>(bytes, 56), 8U);
    const std::size_t third = 64 + 2 * 24;
    EXPECT_EQ(number_at<std::uint64_t>(bytes, third), bytes.size() + 3);
    EXPECT_EQ(number_at<std::uint64_t>(bytes, third + 8), 5U);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, third + 16), 0xCU);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, third + 20), 6U);
    EXPECT_EQ(std::memcmp(bytes.data() + 64 + 3 * 24, "cat/1acat/1bcat/1c", 18), 0);
    EXPECT_EQ(
        number_at<std::uint32_t>(bytes, bytes.size() - 4),
        crc32c(std::span{bytes}.first(bytes.size() - 4)));
}

TEST(ChunkFormat, HeaderReadsBackWithPayloadBehindIt) {
    auto bytes = bytes_of(header());
    EXPECT_EQ(chunk_header_length(bytes).value(), bytes.size());
    bytes.resize(header().object_bytes());
    EXPECT_EQ(parse_chunk_header(bytes).value(), header());
}

TEST(ChunkFormat, EveryFlippedBitAndEveryTruncationIsAnError) {
    const auto bytes = bytes_of(header());
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        auto damaged = bytes;
        damaged[bit / 8] ^= std::byte(1U << bit % 8);
        EXPECT_FALSE(parse_chunk_header(damaged).has_value()) << "bit " << bit;
    }
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(parse_chunk_header(std::span{bytes}.first(length)).has_value()) << length;
    }
}

// Headers with a valid checksum, as a hostile writer may send them. If one is accepted, encoding it
// again gives the same bytes, so that an index can be rebuilt.
TEST(ChunkFormat, SignedGarbageIsRejectedOrCanonical) {
    Prng random{test::seed()};
    for (int i = 0; i < 20'000; ++i) {
        auto bytes = bytes_of(header());
        test::mutate(bytes, random);
        if (bytes.size() < kChunkFixedBytes) {
            continue;
        }
        const auto length = static_cast<std::uint32_t>(bytes.size());
        if (random.below(2) == 0) {
            std::memcpy(bytes.data() + 12, &length, sizeof(length));
        }
        sign(bytes);
        if (const auto parsed = parse_chunk_header(bytes)) {
            const auto again = bytes_of(*parsed);
            ASSERT_LE(again.size(), bytes.size());
            EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin()));
        }
    }
}

TEST(ChunkFormat, ErrorNamesTheOtherVersion) {
    auto bytes = bytes_of(header());
    bytes[8] = std::byte{9};
    const auto parsed = parse_chunk_header(bytes);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr("version 9"));
}

TEST(ChunkFormat, RejectsInvalidSampleNamesAndEmptyChunks) {
    for (const std::string& name :
         {std::string{}, std::string{"a\0b", 3}, std::string(65536, 'x')}) {
        ChunkHeader wrong = header();
        wrong.samples[0].name = name;
        EXPECT_FALSE(encode_chunk_header(wrong).has_value());
    }
    ChunkHeader empty = header();
    empty.samples.clear();
    EXPECT_FALSE(encode_chunk_header(empty).has_value());
}

TEST(ChunkIndex, ReadsBack) {
    const std::vector<ChunkHeader> headers{header(0), header(1)};
    EXPECT_EQ(parse_chunk_index(encode_chunk_index(headers)).value(), headers);
}

TEST(ChunkIndex, EveryFlippedBitIsAnError) {
    const auto bytes = encode_chunk_index({header(0), header(1)});
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        auto damaged = bytes;
        damaged[bit / 8] ^= std::byte(1U << bit % 8);
        EXPECT_FALSE(parse_chunk_index(damaged).has_value()) << "bit " << bit;
    }
}

TEST(ChunkIndex, IncompleteAndMixedPacksAreRefused) {
    EXPECT_FALSE(check_pack({}).has_value());
    EXPECT_FALSE(check_pack({header(0)}).has_value());
    EXPECT_FALSE(check_pack({header(1), header(0)}).has_value());
    ChunkHeader other = header(1);
    other.pack.id = PackId{5};
    EXPECT_FALSE(check_pack({header(0), other}).has_value());
    EXPECT_TRUE(check_pack({header(0), header(1)}).has_value());
    EXPECT_FALSE(parse_chunk_index(encode_chunk_index({header(0)})).has_value());
}

TEST(ChunkPlace, RoundTripsWithAnyEtag) {
    for (const std::string etag : {"abc", "d41d8-3", "with:colons:in it"}) {
        const ChunkPlace place{7, 4160, 0xDEADBEEF, 4194304, etag};
        EXPECT_EQ(parse_place(encode_place(place)), place);
    }
    EXPECT_EQ(encode_place({7, 4160, 0x1a2b3c4d, 4194304, "e"}), "chunk:7:4160:1a2b3c4d:4194304:e");
}

TEST(ChunkPlace, RejectsEtagsThatAreNotChunkPlaces) {
    for (const char* text :
         {"",
          "d41d8cd98f00b204e9800998ecf8427e",
          "chunk:",
          "chunk:1:100:0:200:",
          "chunk:x:100:0:200:e",
          "chunk:1:-100:0:200:e",
          "chunk:1:100:0:99:e",
          "chunk:1:63:0:200:e",
          "chunk:1:100:g:200:e",
          "chunk:99999999999:100:0:200:e",
          "chunk:1:100:0"}) {
        EXPECT_FALSE(parse_place(text).has_value()) << text;
    }
}

TEST(ListSamples, GivesEachSampleItsKeySizeAndPlaceInTheChunk) {
    const auto samples = list_samples({header(0), header(1)}, listing()).value();
    ASSERT_EQ(samples.size(), 6U);
    EXPECT_EQ(samples[5].key, "cat/1c");
    EXPECT_EQ(samples[5].size_bytes, 5U);
    const ChunkHeader chunk = header(1);
    EXPECT_EQ(
        parse_place(samples[5].etag),
        (ChunkPlace{1, chunk.header_bytes() + 3, 0xC, chunk.object_bytes(), "e1"}));
}

TEST(ListSamples, MoreChunksThanHeadersAreAConflict) {
    auto objects = listing();
    objects.push_back({"chunk-00000002", 500, "e2"});
    EXPECT_EQ(list_samples({header(0), header(1)}, objects).error().code, ErrorCode::kConflict);
    objects.back().key = "chunk-2";
    EXPECT_TRUE(list_samples({header(0), header(1)}, objects).has_value()) << "not a chunk's key";
}

TEST(ChunkIndex, FitsTheFirstChunkOfItsPackOnly) {
    const std::vector<ChunkHeader> headers{header(0), header(1)};
    const auto begin_of = [](const ChunkHeader& chunk) {
        auto bytes = bytes_of(chunk);
        bytes.resize(kChunkFixedBytes);
        return bytes;
    };
    EXPECT_TRUE(check_first_chunk(headers, begin_of(header(0))).has_value());
    ChunkHeader other = header(0);
    other.pack.id = PackId{5};
    EXPECT_EQ(check_first_chunk(headers, begin_of(other)).error().code, ErrorCode::kConflict);
    EXPECT_EQ(check_first_chunk(headers, begin_of(header(1))).error().code, ErrorCode::kConflict);
    auto short_begin = begin_of(header(0));
    short_begin.pop_back();
    EXPECT_EQ(check_first_chunk(headers, short_begin).error().code, ErrorCode::kCorruption);
}

TEST(ChunkIndex, IsKnownByItsFirstBytes) {
    auto index = encode_chunk_index({header(0), header(1)});
    index.resize(8);
    EXPECT_TRUE(begins_as_index(index));
    index.pop_back();
    EXPECT_FALSE(begins_as_index(index));
    EXPECT_FALSE(begins_as_index(bytes_of(header(0))));
    EXPECT_FALSE(begins_as_index({}));
}

TEST(ChunkKeys, AChunkNumberHasOneSpelling) {
    for (const std::uint32_t number : {0U, 7U, 99'999'999U, 100'000'000U, 4'294'967'295U}) {
        EXPECT_EQ(parse_chunk_key(chunk_key(number)), number);
    }
    for (const char* key : {"chunk-", "chunk-7", "chunk-000000007", "chunk-0000000x", "index"}) {
        EXPECT_FALSE(parse_chunk_key(key).has_value()) << key;
    }
}

TEST(ListSamples, MissingOrResizedChunkIsAConflict) {
    auto objects = listing();
    objects[2].size_bytes += 1;
    const auto resized = list_samples({header(0), header(1)}, objects);
    ASSERT_FALSE(resized.has_value());
    EXPECT_EQ(resized.error().code, ErrorCode::kConflict);
    EXPECT_THAT(resized.error().message, HasSubstr("chunk-00000001"));
    objects.pop_back();
    EXPECT_FALSE(list_samples({header(0), header(1)}, objects).has_value());
}

}  // namespace
}  // namespace stoker::domain
