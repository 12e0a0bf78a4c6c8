#include "common/domain/megatron_index.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/megatron_text.h"
#include "tests/support/read_index.h"

namespace stoker::domain {
namespace {

using test::megatron_text;
using test::MegatronText;
using testing::HasSubstr;

Result<test::IndexedShard> index_of(const std::string& text, std::uint64_t bin_bytes) {
    MegatronIndex index{{"c4.bin", bin_bytes, "b"}, {"c4.idx", text.size(), "i"}};
    return test::read_index(index, text);
}

Error error_of(const MegatronText& index, std::uint64_t bin_bytes = 100) {
    const auto indexed = index_of(index.text(), bin_bytes);
    EXPECT_FALSE(indexed.has_value());
    return indexed ? Error{} : indexed.error();
}

TEST(MegatronIndex, SequencesAreRangesOfTheBinFile) {
    MegatronText text = megatron_text({3, 0, 2});
    for (const bool has_modes : {false, true}) {
        text.has_modes = has_modes;
        const auto indexed = index_of(text.text(), 10);
        ASSERT_TRUE(indexed.has_value()) << indexed.error().message;
        ASSERT_EQ(indexed->samples.size(), 3U);
        EXPECT_EQ(indexed->windows, 1U);
        EXPECT_EQ(
            indexed->samples[0], (ListedObject{"c4.bin/000000000.uint16", 6, "range:0:10:6:b"}));
        EXPECT_EQ(
            indexed->samples[1], (ListedObject{"c4.bin/000000001.uint16", 0, "range:6:10:6:b"}));
        EXPECT_EQ(
            indexed->samples[2], (ListedObject{"c4.bin/000000002.uint16", 4, "range:6:10:6:b"}));
    }
}

TEST(MegatronIndex, AnEmptyLastSequenceHasAPlace) {
    const auto indexed = index_of(megatron_text({1, 0}).text(), 2);
    ASSERT_EQ(indexed->samples.size(), 2U);
    EXPECT_EQ(indexed->samples[1].etag, "range:1:2:6:b");
    EXPECT_EQ(index_of(megatron_text({}).text(), 0)->samples.size(), 0U);
    EXPECT_EQ(index_of(megatron_text({0, 0}).text(), 0)->samples.size(), 0U) << "without a place";
}

TEST(MegatronIndex, TheBinFileEndsWithTheLastSequence) {
    for (const std::uint64_t bin_bytes : {11U, 100U}) {
        EXPECT_THAT(
            error_of(megatron_text({3, 0, 2}), bin_bytes).message,
            HasSubstr("'c4.idx': its sequences end at byte 10 of 'c4.bin', which has"));
    }
    EXPECT_EQ(error_of(megatron_text({}), 1).code, ErrorCode::kCorruption);
    MegatronText any_order = megatron_text({3, 2});
    any_order.offsets = {4, 0};
    EXPECT_TRUE(index_of(any_order.text(), 10).has_value());
}

TEST(MegatronIndex, EveryTypeHasItsSize) {
    constexpr std::array<std::pair<const char*, int>, 8> kTypes{
        {{"uint8", 1},
         {"int8", 1},
         {"int16", 2},
         {"int32", 4},
         {"int64", 8},
         {"float64", 8},
         {"float32", 4},
         {"uint16", 2}}};
    for (std::uint8_t code = 1; code <= kTypes.size(); ++code) {
        const auto [name, bytes] = kTypes[code - 1];
        MegatronText text = megatron_text({2}, bytes);
        text.type = code;
        const auto indexed = index_of(text.text(), 2U * bytes);
        ASSERT_TRUE(indexed.has_value()) << name;
        EXPECT_EQ(indexed->samples[0].key, std::string{"c4.bin/000000000."} + name);
        EXPECT_EQ(indexed->samples[0].size_bytes, 2U * bytes);
    }
}

TEST(MegatronIndex, LongTablesAreReadInRuns) {
    const auto text = megatron_text(std::vector<std::int32_t>(200'000, 1)).text();
    const auto indexed = index_of(text, 400'000);
    ASSERT_EQ(indexed->samples.size(), 200'000U);
    EXPECT_EQ(indexed->windows, 1U + 2U * 4U);
    EXPECT_EQ(indexed->samples[150'000].key, "c4.bin/000150000.uint16");
    EXPECT_EQ(indexed->samples[150'000].etag, "range:300000:400000:6:b");
}

TEST(MegatronIndex, RefusesWhatMegatronRefuses) {
    MegatronText index = megatron_text({3});
    index.magic = "TNTIDX\0\0\0";
    EXPECT_THAT(
        error_of(index).message, HasSubstr("'c4.idx': is not the index of a Megatron dataset"));
    index = megatron_text({3});
    index.version = 2;
    EXPECT_EQ(error_of(index).code, ErrorCode::kInvalidArgument);
    for (const int type : {0, 9, 255}) {
        index = megatron_text({3});
        index.type = static_cast<std::uint8_t>(type);
        EXPECT_EQ(error_of(index).code, ErrorCode::kCorruption);
    }
    const std::string whole = megatron_text({3, 4}).text();
    for (std::size_t cut = MegatronIndex::kHeaderBytes; cut < whole.size(); ++cut) {
        EXPECT_FALSE(index_of(whole.substr(0, cut), 14).has_value()) << cut;
    }
}

TEST(MegatronIndex, SequencesOutsideTheBinFileAreErrors) {
    EXPECT_THAT(
        error_of(megatron_text({3}), 5).message,
        HasSubstr("sequence 0 has 6 bytes from byte 0 of 'c4.bin', which has 5 bytes"));
    EXPECT_THAT(error_of(megatron_text({3}), 0).message, HasSubstr("'c4.bin', which has 0 bytes"));
    for (const std::int64_t offset :
         {std::int64_t{-1},
          std::int64_t{95},
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
        MegatronText index = megatron_text({3});
        index.offsets[0] = offset;
        EXPECT_EQ(error_of(index).code, ErrorCode::kCorruption) << offset;
    }
    EXPECT_THAT(error_of(megatron_text({-1})).message, HasSubstr("sequence 0 has -1 tokens"));
}

TEST(MegatronIndex, HostileCountsNeedTheirBytes) {
    for (const std::uint64_t count :
         {~std::uint64_t{0}, std::uint64_t{1} << 61U, std::uint64_t{3}}) {
        for (const std::size_t at : {18U, 26U}) {
            std::string text = megatron_text({3, 4}).text();
            text.replace(at, 8, WireWriter{}.put(count).text());
            const bool is_right = at == 26 && count == 3;  // the number of documents
            EXPECT_EQ(index_of(text, 14).has_value(), is_right) << count << " at " << at;
        }
    }
}

}  // namespace
}  // namespace stoker::domain
