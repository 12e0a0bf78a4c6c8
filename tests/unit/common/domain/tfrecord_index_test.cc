#include "common/domain/tfrecord_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/range_place.h"
#include "tests/support/read_index.h"
#include "tests/support/test_seed.h"
#include "tests/support/tfrecord_text.h"

namespace stoker::domain {
namespace {

using test::slice_of;
using test::tfrecord;
using test::tfrecord_header;
using testing::HasSubstr;

Result<test::IndexedShard> index_of(const std::string& text) {
    TfRecordIndex index{{"a.tfrecord", text.size(), "e"}};
    return test::read_index(index, text);
}

Error error_of(const std::string& text) {
    const auto indexed = index_of(text);
    EXPECT_FALSE(indexed.has_value());
    return indexed ? Error{} : indexed.error();
}

// The bytes that TensorFlow writes for an empty record.
TEST(TfRecordIndex, ReadsAnEmptyRecordOfTensorFlow) {
    const std::string text{"\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16};
    EXPECT_EQ(tfrecord(""), text);
    const auto indexed = index_of(text);
    ASSERT_TRUE(indexed.has_value()) << indexed.error().message;
    ASSERT_EQ(indexed->samples.size(), 1U);
    EXPECT_EQ(indexed->samples[0].key, "a.tfrecord/000000000");
    EXPECT_EQ(indexed->samples[0].etag, "crc32c:00000000:range:12:16:10:e");
    EXPECT_EQ(indexed->samples[0].size_bytes, 0U);
}

TEST(TfRecordIndex, FindsEveryPayloadWithItsChecksum) {
    const std::uint64_t seed = test::seed();
    Prng random{seed};
    std::string text;
    std::vector<std::string> payloads;
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t most = i % 20 == 0 ? 300'000 : 3'000;
        payloads.emplace_back(random.below(most), static_cast<char>('a' + i % 26));
        text += tfrecord(payloads.back());
    }
    const auto indexed = index_of(text);
    ASSERT_TRUE(indexed.has_value()) << indexed.error().message << " seed " << seed;
    ASSERT_EQ(indexed->samples.size(), payloads.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        const ListedObject& sample = indexed->samples[i];
        EXPECT_EQ(slice_of(text, sample), payloads[i]) << i;
        EXPECT_EQ(
            parse_range_place(sample.key, sample.etag)->crc32c,
            crc32c(std::as_bytes(std::span{payloads[i]})));
    }
}

TEST(TfRecordIndex, PayloadsOfLargeRecordsAreNotRead) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
        text += tfrecord(std::string(200'000, 'x'));
    }
    const auto indexed = index_of(text);
    EXPECT_EQ(indexed->samples.size(), 20U);
    EXPECT_LE(indexed->windows, 21U);
    EXPECT_LT(indexed->bytes, text.size() / 4);
}

TEST(TfRecordIndex, WindowsOverSmallRecordsGrow) {
    std::string text;
    while (text.size() < 24'000'000) {
        text += tfrecord(std::string(10'000, 'x'));
    }
    const auto indexed = index_of(text);
    EXPECT_LE(indexed->windows, 5U + 2U) << "256 KiB to 4 MiB, and twice 8 MiB";
    TfRecordIndex index{{"a.tfrecord", text.size(), "e"}};
    const auto limited = test::read_index(index, text, 1U << 20U);
    ASSERT_TRUE(limited.has_value()) << limited.error().message;
    EXPECT_EQ(limited->samples.size(), indexed->samples.size());
    EXPECT_EQ(limited->longest_window, 1U << 20U);
}

TEST(TfRecordIndex, DamageIsNamedWithItsOffset) {
    const std::string good = tfrecord("one");
    EXPECT_EQ(index_of("")->samples.size(), 0U);
    std::string wrong = good + good;
    wrong[good.size() + 9] ^= 1;
    const Error error = error_of(wrong);
    EXPECT_EQ(error.code, ErrorCode::kCorruption);
    EXPECT_EQ(
        error.message, "'a.tfrecord': at byte 19: the length of a record does not match its CRC");
    EXPECT_THAT(error_of("\x1f\x8b compressed").message, HasSubstr("no TFRecord file"));
    for (std::size_t cut = 1; cut < good.size(); ++cut) {
        EXPECT_THAT(error_of(good + good.substr(0, cut)).message, HasSubstr("at byte 19: ends"));
    }
}

TEST(TfRecordIndex, HostileLengthsAreOutsideTheFile) {
    for (const std::uint64_t length :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 15, std::uint64_t{1}}) {
        EXPECT_THAT(
            error_of(tfrecord_header(length) + "1234").message, HasSubstr("ends inside a record"));
    }
}

TEST(TfRecordIndex, ShardsAreToldByTheirNames) {
    for (const char* key :
         {"a.tfrecord",
          "f/a.tfrecords",
          "a.tfrec",
          "train-00007-of-01024",
          "v1.0/train-0-of-1",
          "a.tfrecord-1-of-2"}) {
        EXPECT_TRUE(is_tfrecord_shard(key)) << key;
    }
    for (const char* key :
         {"a.tfrecord.idx",
          "a.tfrecord.gz",
          "features.json",
          "-of-2",
          "a-x-of-2",
          "model.ckpt.data-00000-of-00001",
          "a.json-0-of-1"}) {
        EXPECT_FALSE(is_tfrecord_shard(key)) << key;
    }
}

}  // namespace
}  // namespace stoker::domain
