#include "sidecar/s3/list_objects.h"

#include <map>
#include <regex>
#include <set>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/origin/s3_xml.h"
#include "tests/support/manifest_of.h"
#include "tests/support/test_seed.h"

namespace stoker::s3 {
namespace {

using testing::HasSubstr;

constexpr std::string_view kPrefix = "set/train/";

using test::blocks_of;
using test::Manifest;
using test::manifest_of;

std::optional<ListQuery> query_of(const sidecar::Query& parameters) {
    S3Call call;
    call.head.method = "GET";
    call.bucket = "bucket";
    call.query = {{"list-type", "2"}};
    call.query.insert(call.query.end(), parameters.begin(), parameters.end());
    return parse_list_query(call);
}

std::string page_of(const Manifest& manifest, const sidecar::Query& parameters) {
    return list_page(query_of(parameters).value(), kPrefix, manifest.view, {});
}

// The decoded first group of every match of `pattern`.
std::vector<std::string> texts(const std::string& xml, const std::string& pattern) {
    std::vector<std::string> found;
    const std::regex element{pattern};
    for (std::sregex_iterator at{xml.begin(), xml.end(), element}, end; at != end; ++at) {
        found.push_back(sidecar::percent_decode((*at)[1].str(), false).value());
    }
    return found;
}

struct Listed {
    std::vector<std::string> keys;
    std::vector<std::string> prefixes;

    bool operator==(const Listed&) const = default;
};

// All pages, as an SDK reads them.
Listed read_pages(const Manifest& manifest, sidecar::Query parameters) {
    Listed all;
    parameters.emplace_back("encoding-type", "url");
    sidecar::Query with_token = parameters;
    for (int pages = 0; pages < 1000; ++pages) {
        const std::string xml = page_of(manifest, with_token);
        for (auto& key : texts(xml, "<Key>([^<]*)</Key>")) {
            all.keys.push_back(key);
        }
        for (auto& prefix : texts(xml, "<CommonPrefixes><Prefix>([^<]*)</Prefix>")) {
            all.prefixes.push_back(prefix);
        }
        const auto token = texts(xml, "<NextContinuationToken>([^<]*)<");
        if (token.empty()) {
            EXPECT_THAT(xml, HasSubstr("<IsTruncated>false<"));
            return all;
        }
        EXPECT_THAT(xml, HasSubstr("<IsTruncated>true<"));
        with_token = parameters;
        with_token.emplace_back("continuation-token", token.front());
    }
    ADD_FAILURE() << "the pages do not end";
    return all;
}

// A slow and simple model of S3's rules for listings.
Listed naive(
    const std::set<std::string>& keys,
    const std::string& prefix,
    const std::string& delimiter,
    const std::string& start_after) {
    Listed all;
    std::set<std::string> prefixes;
    for (const std::string& short_key : keys) {
        const std::string key = std::string{kPrefix} + short_key;
        if (!key.starts_with(prefix) || key <= start_after) {
            continue;
        }
        const auto at = delimiter.empty() ? std::string::npos : key.find(delimiter, prefix.size());
        if (at == std::string::npos) {
            all.keys.push_back(key);
        } else {
            prefixes.insert(key.substr(0, at + delimiter.size()));
        }
    }
    all.prefixes.assign(prefixes.begin(), prefixes.end());
    return all;
}

TEST(ListObjects, PagesOfRandomKeysAreThoseOfANaiveModel) {
    std::mt19937_64 random{test::seed()};
    constexpr std::string_view kLetters = "ab/+ &<\xC3\xA9";
    const auto text = [&](std::size_t length_max) {
        std::string out;
        for (auto left = random() % (length_max + 1); left > 0; --left) {
            out += kLetters[random() % kLetters.size()];
        }
        return out;
    };
    for (int round = 0; round < 300; ++round) {
        std::set<std::string> keys;
        for (auto left = 1 + random() % 60; left > 0; --left) {
            keys.insert("k" + text(6));
        }
        const Manifest manifest = manifest_of(keys);
        const std::string prefix = std::string{kPrefix} + (random() % 2 == 0 ? "" : "k" + text(2));
        const std::string delimiter = random() % 3 == 0 ? "" : random() % 2 == 0 ? "/" : text(2);
        const std::string start_after =
            random() % 3 == 0 ? "" : std::string{kPrefix} + "k" + text(3);
        sidecar::Query parameters = {
            {"prefix", prefix},
            {"delimiter", delimiter},
            {"max-keys", std::to_string(1 + random() % 7)}};
        if (!start_after.empty()) {
            parameters.emplace_back("start-after", start_after);
        }
        ASSERT_EQ(read_pages(manifest, parameters), naive(keys, prefix, delimiter, start_after))
            << "prefix " << prefix << " delimiter " << delimiter << " after " << start_after;
    }
}

TEST(ListObjects, StartAfterOutsideTheDatasetListsAllKeysOrNone) {
    const Manifest manifest = manifest_of({"a", "b"});
    const sidecar::Query base = {{"prefix", std::string{kPrefix}}};
    sidecar::Query before = base;
    before.emplace_back("start-after", "set/a");
    EXPECT_EQ(read_pages(manifest, before).keys.size(), 2U);
    sidecar::Query after = base;
    after.emplace_back("start-after", "set/z");
    EXPECT_EQ(read_pages(manifest, after).keys.size(), 0U);
}

TEST(ListObjects, EscapesForXml) {
    const Manifest manifest = manifest_of({"a&<b>\"\x01"});
    const std::string xml = page_of(manifest, {{"prefix", std::string{kPrefix}}});
    EXPECT_THAT(xml, HasSubstr("<Key>set/train/a&amp;&lt;b&gt;&quot;&#x1;</Key>"));
    EXPECT_THAT(xml, HasSubstr("<ETag>&quot;etag&quot;</ETag>"));
    EXPECT_THAT(xml, HasSubstr("<KeyCount>1</KeyCount>"));
}

TEST(ListObjects, MaxKeysIsAtMostAThousand) {
    std::set<std::string> keys;
    for (int at = 0; at < 1500; ++at) {
        keys.insert(std::to_string(at));
    }
    const Manifest manifest = manifest_of(keys);
    const std::string prefix{kPrefix};
    EXPECT_THAT(
        page_of(manifest, {{"prefix", prefix}, {"max-keys", "5000"}}),
        HasSubstr("<KeyCount>1000</KeyCount><IsTruncated>true"));
    EXPECT_THAT(
        page_of(manifest, {{"prefix", prefix}, {"max-keys", "0"}}),
        HasSubstr("<KeyCount>0</KeyCount><IsTruncated>false"));
}

TEST(ListObjects, LeavesOtherRequestsToTheOrigin) {
    EXPECT_FALSE(query_of({{"max-keys", "-1"}}));
    EXPECT_FALSE(query_of({{"continuation-token", "of-the-origin"}}));
    EXPECT_FALSE(query_of({{"encoding-type", "other"}}));
    EXPECT_FALSE(query_of({{"versions", ""}}));
    S3Call other;
    other.head.method = "GET";
    other.bucket = "bucket";
    EXPECT_FALSE(parse_list_query(other));
    other.query = {{"list-type", "2"}};
    EXPECT_TRUE(parse_list_query(other));
    other.head.content_length = 3;
    EXPECT_FALSE(parse_list_query(other)) << "a request with a body";
}

TEST(ListObjects, TokensEncodeTheKeyToStartAfter) {
    const Manifest manifest = manifest_of({"a/1", "a/2", "b"});
    const std::string prefix{kPrefix};
    const auto token_of = [&](const sidecar::Query& parameters) {
        return texts(page_of(manifest, parameters), "<NextContinuationToken>([^<]*)<").at(0);
    };
    EXPECT_EQ(
        start_after_of_token(token_of({{"prefix", prefix}, {"max-keys", "1"}})), "set/train/a/1");
    EXPECT_EQ(
        start_after_of_token(token_of({{"prefix", prefix}, {"max-keys", "1"}, {"delimiter", "/"}})),
        "set/train/a/\xF4\x8F\xBF\xBF");
    EXPECT_EQ(start_after_of_token("of-the-origin"), std::nullopt);
}

TEST(ListObjects, ListsObjectsAndNotTheirBlocks) {
    Prng random{test::seed()};
    for (int round = 0; round < 30; ++round) {
        std::map<std::string, std::uint64_t> sizes;
        std::set<std::string> keys;
        for (int at = 0; at < 30; ++at) {
            const auto key = fmt::format("{}/{}", random.below(4), random.below(100));
            keys.insert(key);
            sizes[key] = random.below(60);
        }
        const Manifest blocks = blocks_of(sizes, 1 + random.below(20));
        const Manifest objects = manifest_of(keys);
        for (const char* size : {"1", "3", "1000"}) {
            for (const char* delimiter : {"", "/"}) {
                const sidecar::Query parameters{
                    {"prefix", std::string{kPrefix}}, {"max-keys", size}, {"delimiter", delimiter}};
                EXPECT_EQ(read_pages(blocks, parameters), read_pages(objects, parameters));
            }
            const sidecar::Query after{
                {"prefix", std::string{kPrefix}},
                {"max-keys", size},
                {"start-after", std::string{kPrefix} + *std::next(keys.begin(), 5)}};
            EXPECT_EQ(read_pages(blocks, after), read_pages(objects, after));
        }
    }
}

TEST(ListObjects, BlocksHaveTheSizeAndETagOfTheirObject) {
    const Manifest manifest = blocks_of({{"a", 25}}, 10);
    const std::string page = page_of(manifest, {{"prefix", std::string{kPrefix}}});
    EXPECT_THAT(page, HasSubstr("<Key>set/train/a</Key>"));
    EXPECT_THAT(page, HasSubstr("<ETag>&quot;etag&quot;</ETag><Size>25</Size>"));
    EXPECT_THAT(page, HasSubstr("<KeyCount>1</KeyCount>"));
}

}  // namespace
}  // namespace stoker::s3
