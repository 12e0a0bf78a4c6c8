#include "common/domain/tar_index.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/range_place.h"
#include "tests/support/read_index.h"
#include "tests/support/tar_text.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

using test::pax_record;
using test::slice_of;
using test::tar_end;
using test::tar_member;
using testing::HasSubstr;

Result<test::IndexedShard> index_of(const std::string& tar, const std::string& key = "a.tar") {
    TarIndex index{{key, tar.size(), "e"}};
    return test::read_index(index, tar);
}

Result<TarSample> parse(const std::string& slice) {
    return parse_tar_sample(std::as_bytes(std::span{slice}));
}

std::vector<std::string> keys_of(const std::string& tar) {
    const auto indexed = index_of(tar);
    EXPECT_TRUE(indexed.has_value()) << indexed.error().message;
    std::vector<std::string> keys;
    for (const ListedObject& sample : indexed->samples) {
        keys.push_back(sample.key);
    }
    return keys;
}

std::string split(std::string_view name) {
    const auto parts = split_member_name(name);
    return parts ? std::string{parts->stem} + "|" + std::string{parts->extension} : "none";
}

// Expected as in webdataset.tariterators.base_plus_ext, except for hidden files, which are skipped.
TEST(TarIndex, StemEndsAtTheFirstDotOfTheBasename) {
    EXPECT_EQ(split("0001.jpg"), "0001|jpg");
    EXPECT_EQ(split("0001.seg.png"), "0001|seg.png");
    EXPECT_EQ(split("a.b/c/0001.jpg"), "a.b/c/0001|jpg");
    EXPECT_EQ(split("./0001.jpg"), "./0001|jpg");
    EXPECT_EQ(split("0001."), "0001|");
    for (const char* name :
         {"",
          "README",
          "a.b/README",
          ".hidden",
          "a/._0001.jpg",
          "__meta__.json/x",
          "__index__/0001.json",
          "__x__"}) {
        EXPECT_EQ(split(name), "none") << name;
    }
    EXPECT_EQ(split("a/__x__.json"), "a/__x__|json");
    EXPECT_EQ(split("__.json"), "__|json");
}

TEST(TarIndex, ConsecutiveMembersOfAStemAreASample) {
    const std::string tar = tar_member("d/", "", '5') + tar_member("d/1.JPG", "one") +
                            tar_member("README", "r") + tar_member("d/1.cls", "7") +
                            tar_member("./d/2.jpg", "two") + tar_member("3.txt", "") + tar_end();
    const auto indexed = index_of(tar, "train/a.tar");
    ASSERT_TRUE(indexed.has_value()) << indexed.error().message;
    ASSERT_EQ(indexed->samples.size(), 3U);
    const ListedObject& first = indexed->samples[0];
    EXPECT_EQ(first.key, "train/a.tar/d/1");
    EXPECT_EQ(first.etag, "range:512:" + std::to_string(tar.size()) + ":11:e");
    EXPECT_EQ(first.size_bytes, 5U * 512U + 1U) << "to the end of the last member's data";
    EXPECT_EQ(
        parse(slice_of(tar, first)).value(),
        (TarSample{"d/1", {{"jpg", 512, 3}, {"cls", 2560, 1}}}));
    EXPECT_EQ(indexed->samples[1].key, "train/a.tar/d/2");
    EXPECT_EQ(parse(slice_of(tar, indexed->samples[1]))->stem, "./d/2") << "as in the archive";
    EXPECT_EQ(
        parse(slice_of(tar, indexed->samples[2])).value(), (TarSample{"3", {{"txt", 512, 0}}}));
}

TEST(TarIndex, LongNamesArePartOfTheSample) {
    const std::string name = std::string(150, 'n') + ".jpg";
    const std::string tar = tar_member("0.jpg", "0") + tar_member("L", name, 'L') +
                            tar_member("n", "1") + tar_member("x", pax_record("size", "2"), 'x') +
                            tar_member(std::string(90, 'm') + ".txt", "22");
    const auto indexed = index_of(tar);
    ASSERT_TRUE(indexed.has_value()) << indexed.error().message;
    ASSERT_EQ(indexed->samples.size(), 3U);
    EXPECT_EQ(parse(slice_of(tar, indexed->samples[1]))->stem, std::string(150, 'n'));
    EXPECT_EQ(parse(slice_of(tar, indexed->samples[2]))->members[0].size_bytes, 2U);
}

TEST(TarIndex, LinksAndMetadataAreLeftOut) {
    const std::string tar = tar_member("__index__/1.json", "{}") + tar_member("1.lnk", "", '2') +
                            tar_member("1.jpg", "1") + tar_end();
    EXPECT_EQ(keys_of(tar), std::vector<std::string>{"a.tar/1"});
    EXPECT_EQ(keys_of(""), std::vector<std::string>{});
    EXPECT_EQ(keys_of(tar_member("README", "r") + tar_end()), std::vector<std::string>{});
}

TEST(TarIndex, RefusesTarFilesWithInvalidMembersOrDamage) {
    const auto error = [](const std::string& tar) { return index_of(tar).error(); };
    const Error twice = error(tar_member("1.jpg", "1") + tar_member("1.JPG", "2"));
    EXPECT_EQ(twice.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(
        twice.message, HasSubstr("'a.tar': sample '1' has two members with extension '.jpg'"));
    EXPECT_THAT(error(tar_member("1.__key__", "1")).message, HasSubstr("has a member '.__key__'"));
    EXPECT_EQ(error(tar_member("1.jpg", "1", 'S')).code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error(std::string(700, 'z')).code, ErrorCode::kCorruption);
    EXPECT_EQ(error(tar_member("1.jpg", "1").substr(0, 512)).code, ErrorCode::kCorruption);
    const std::string name = tar_member("L", "1.jpg", 'L');
    for (const std::size_t length : {512U, 517U, 1023U, 1024U}) {
        EXPECT_EQ(error(name.substr(0, length)).code, ErrorCode::kCorruption) << length;
    }
    EXPECT_EQ(error(test::tar_header("x", 0, 'x')).code, ErrorCode::kCorruption);
    EXPECT_EQ(
        index_of(tar_member("1.jpg", "1"), std::string(70'000, 'k')).error().code,
        ErrorCode::kInvalidArgument);
}

TEST(TarIndex, BoundsTheMembersOfASampleAndTheirNames) {
    std::string tar;
    for (int i = 0; i < 1024; ++i) {
        tar += tar_member("1." + std::to_string(i), "");
    }
    EXPECT_TRUE(index_of(tar).has_value());
    EXPECT_EQ(index_of(tar + tar_member("1.x", "")).error().code, ErrorCode::kInvalidArgument);
    const std::string name = "1." + std::string(256, 'x');
    const std::string long_name = tar_member("L", name, 'L') + tar_member("1.jpg", "1");
    EXPECT_EQ(index_of(long_name).error().code, ErrorCode::kInvalidArgument);
}

TEST(TarIndex, ASampleHasOneStem) {
    EXPECT_THAT(
        parse(tar_member("1.a", "1") + tar_member("2.a", "2")).error().message,
        HasSubstr("members of '1' and of '2'"));
    EXPECT_FALSE(parse(tar_member("README", "1")).has_value());
    EXPECT_FALSE(parse("").has_value());
    EXPECT_FALSE(parse(std::string(600, 'z')).has_value());
}

TEST(TarIndex, ManySmallSamplesAreIndexedByFewReads) {
    std::string tar;
    for (int i = 0; i < 1000; ++i) {
        tar += tar_member(std::to_string(i) + ".jpg", std::string(3000, 'j')) +
               tar_member(std::to_string(i) + ".cls", "1");
    }
    const auto indexed = index_of(tar).value();
    EXPECT_EQ(indexed.samples.size(), 1000U);
    EXPECT_LE(indexed.windows, tar.size() / TarIndex::kLongWindowBytes + 2);
}

TEST(TarIndex, DataOfLargeSamplesIsNotRead) {
    std::string tar;
    for (int i = 0; i < 100; ++i) {
        tar += tar_member(std::to_string(i) + ".jpg", std::string(200'000, 'j')) +
               tar_member(std::to_string(i) + ".cls", "1");
    }
    const auto indexed = index_of(tar).value();
    EXPECT_EQ(indexed.samples.size(), 100U);
    EXPECT_LE(indexed.windows, 101U) << "the next image's header is beside the label";
    EXPECT_LT(indexed.bytes, tar.size() / 10);
}

// Compares random shards with all kinds of headers with the samples that were put into them.
TEST(TarIndex, FindsEverySample) {
    Prng random{test::seed()};
    for (int round = 0; round < 200; ++round) {
        std::string tar;
        std::map<std::string, std::map<std::string, std::string>> expected;
        const std::uint64_t count = random() % 40;
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::string stem = std::to_string(i) + std::string(random() % 90, 's');
            for (std::uint64_t member = 0; member <= random() % 3; ++member) {
                const std::string extension = "e" + std::to_string(member);
                const std::string name = stem + "." + extension;
                const std::string data(random() % (random() % 4 == 0 ? 300'000 : 2000), 'd');
                const std::uint64_t kind = random() % 3;
                tar += kind == 0   ? tar_member("L", name, 'L') + tar_member("cut", data)
                       : kind == 1 ? tar_member("x", pax_record("path", name), 'x') +
                                         tar_member("cut", data)
                                   : tar_member(name, data);
                expected[stem][extension] = data;
            }
        }
        tar += random() % 2 == 0 ? tar_end() : "";
        const auto indexed = index_of(tar);
        ASSERT_TRUE(indexed.has_value()) << indexed.error().message << ", seed " << test::seed();
        std::map<std::string, std::map<std::string, std::string>> found;
        for (const ListedObject& sample : indexed->samples) {
            const std::string slice = slice_of(tar, sample);
            const TarSample parsed = parse(slice).value();
            EXPECT_EQ(sample.key, "a.tar/" + parsed.stem);
            for (const TarSampleMember& member : parsed.members) {
                found[parsed.stem][member.extension] =
                    slice.substr(member.offset, member.size_bytes);
            }
        }
        ASSERT_TRUE(found == expected) << "round " << round << ", seed " << test::seed();
    }
}

}  // namespace
}  // namespace stoker::domain
