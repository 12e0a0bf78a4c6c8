#include "common/domain/shard_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

using testing::HasSubstr;

Listing listing_of(const std::vector<std::string>& keys) {
    Listing listing;
    for (const std::string& key : keys) {
        EXPECT_TRUE(listing.add(key, 100, "e").has_value());
    }
    return listing;
}

Result<std::vector<std::string>> shards_of(
    const ShardFormat& format, const std::vector<std::string>& keys) {
    STOKER_TRY(const auto shards, find_shards(format, listing_of(keys)));
    std::vector<std::string> found;
    for (const Shard& shard : shards) {
        found.push_back(shard.data.key + (shard.index ? "+" + shard.index->key : ""));
    }
    return found;
}

std::string error_of(const ShardFormat& format, const std::vector<std::string>& keys) {
    const auto shards = shards_of(format, keys);
    EXPECT_FALSE(shards.has_value());
    return shards ? "" : shards.error().message;
}

using Keys = std::vector<std::string>;
constexpr auto kTar = SampleFormat::kTar;
constexpr auto kRecords = SampleFormat::kRecords;
constexpr auto kMegatron = SampleFormat::kMegatron;
constexpr auto kTfRecord = SampleFormat::kTfRecord;

TEST(ShardFormat, NamesTellShards) {
    EXPECT_EQ(
        shards_of({kTar}, {"a.tar", "a.tar.idx", "f/b.tar"}).value(), (Keys{"a.tar", "f/b.tar"}));
    EXPECT_EQ(shards_of({kTfRecord}, {"a.tfrecord", "info.json"}).value(), Keys{"a.tfrecord"});
    EXPECT_EQ(shards_of({kRecords, {10}}, {"a", "b.bin"}).value(), (Keys{"a", "b.bin"}));
    EXPECT_EQ(shards_of({kRecords, {10, ".bin"}}, {"a", "b.bin"}).value(), Keys{"b.bin"});
}

TEST(ShardFormat, BinAndIdxArePairs) {
    EXPECT_EQ(
        shards_of({kMegatron}, {"b.idx", "a.c.bin", "a.bin", "a.idx", "a.c.idx", "b.bin", "x"})
            .value(),
        (Keys{"a.bin+a.idx", "a.c.bin+a.c.idx", "b.bin+b.idx"}));
    EXPECT_EQ(
        error_of({kMegatron}, {"a.bin", "b.idx"}),
        "'a.bin' has no 'a.idx' beside it: add that one, or move this one away");
    EXPECT_THAT(
        error_of({kMegatron}, {"f/a.idx"}), HasSubstr("'f/a.idx' has no 'f/a.bin' beside it"));
}

TEST(ShardFormat, CompressedShardsAreRefused) {
    for (const char* key : {"a.tar.gz", "a.tgz"}) {
        EXPECT_THAT(error_of({kTar}, {"b.tar", key}), HasSubstr("is compressed: unpack it first"));
    }
    for (const char* key : {"a.tfrecord.gz", "a-0-of-1.zst"}) {
        EXPECT_THAT(error_of({kTfRecord}, {key}), HasSubstr("is compressed: unpack it first"));
    }
    EXPECT_EQ(shards_of({kTfRecord}, {"a.tfrecord", "x.json.gz"}).value(), Keys{"a.tfrecord"});
}

TEST(ShardFormat, EveryObjectHasWholeRows) {
    EXPECT_THAT(error_of({kRecords, {30}}, {"a", "b.bin"}), HasSubstr("'a' has 100 bytes"));
}

TEST(ShardFormat, NoShardIsAnError) {
    for (const ShardFormat& format :
         {ShardFormat{kTar}, {kRecords, {10, ".bin"}}, {kMegatron}, {kTfRecord}}) {
        EXPECT_EQ(shards_of(format, {"x"}).error().code, ErrorCode::kNotFound);
    }
    EXPECT_THAT(error_of({kRecords}, {"x"}), HasSubstr("records.bytes is 0"));
}

TEST(ShardFormat, TextsTellApartWhatGivesOtherSamples) {
    EXPECT_NE((ShardFormat{kRecords, {10}}.describe()), (ShardFormat{kRecords, {11}}.describe()));
    EXPECT_NE(
        (ShardFormat{kRecords, {10, ".bin"}}.describe()),
        (ShardFormat{kRecords, {10, ".npy"}}.describe()));
    EXPECT_NE(ShardFormat{kMegatron}.describe(), ShardFormat{kTar}.describe());
}

TEST(ShardFormat, RowsOfAnObjectNeedNoReading) {
    Listing samples;
    const Shard shard{{"f/a.bin", 30, "e"}, std::nullopt};
    const auto index = open_shard({kRecords, {10}}, shard).value();
    EXPECT_EQ(index->next()->length, 0U);
    ASSERT_TRUE(index->take({}, samples).has_value());
    EXPECT_EQ(index->next(), std::nullopt);
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(samples.objects()[2], (ListedObject{"f/a.bin/000000002", 10, "range:20:30:7:e"}));
}

TEST(ShardFormat, AnIndexWithoutHeaderIsDamaged) {
    const Shard shard{{"a.bin", 30, "e"}, ListedObject{"a.idx", 33, "e"}};
    const auto index = open_shard({kMegatron}, shard);
    EXPECT_EQ(index.error().code, ErrorCode::kCorruption);
    EXPECT_EQ(index.error().message, "'a.idx' is not the index of a Megatron dataset");
}

}  // namespace
}  // namespace stoker::domain
