// The S3 origin against a real S3 server. Runs where STOKER_VERSITYGW names a versitygw binary
// (e2e/origin/build.sh makes one) and says so where it does not.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/origin/make_origin.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/support/s3_gateway.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using test::fetch_now;
using test::start_fetch;
using test::text_of;
using testing::HasSubstr;

const SystemClock kClock;
constexpr int kExitNotRun = 77;

const char* gateway_program() {
    return std::getenv("STOKER_VERSITYGW");
}

class OriginGateway : public testing::Test {
protected:
    static void SetUpTestSuite() {
        gateway_ = std::make_unique<test::S3Gateway>(gateway_program());
        ASSERT_TRUE(gateway_->running()) << gateway_program() << " does not answer";
        for (const char* bucket : {"odd", "large", "changing"}) {
            const Status made = gateway_->make_bucket(bucket);
            ASSERT_TRUE(made.has_value()) << made.error().message;
        }
    }

    static void TearDownTestSuite() { gateway_.reset(); }

    static std::unique_ptr<Origin> open(
        const std::string& uri, std::optional<Credentials> keys = gateway_->credentials()) {
        OriginOptions options;
        options.endpoint = gateway_->endpoint();
        const Environment environment = [keys](const char* name) -> const char* {
            const std::string_view wanted = name;
            return !keys                               ? nullptr
                   : wanted == "AWS_ACCESS_KEY_ID"     ? keys->access_key_id.c_str()
                   : wanted == "AWS_SECRET_ACCESS_KEY" ? keys->secret_access_key.c_str()
                                                       : nullptr;
        };
        auto origin = make_origin(uri, options, environment, kClock, 1);
        EXPECT_TRUE(origin.has_value()) << origin.error().message;
        return *std::move(origin);
    }

    static void put(const std::string& bucket, const std::string& key, const std::string& bytes) {
        const Status stored = gateway_->put(bucket, key, bytes);
        ASSERT_TRUE(stored.has_value()) << key << ": " << stored.error().message;
    }

    static OriginFetch wanting(const domain::ListedObject& object) {
        return {object.key, object.etag, object.size_bytes};
    }

    static std::unique_ptr<test::S3Gateway> gateway_;
};

std::unique_ptr<test::S3Gateway> OriginGateway::gateway_;

TEST_F(OriginGateway, ListsAndFetchesAThousandObjectsWithOddKeys) {
    const std::vector<std::string> names = {
        "plain.jpg",    "with space",     "plus+sign",        "percent%41%25%", "question?mark",
        "hash#tag",     "am&per=s",       "\u00fcml\u00e4ut", "\u96ea",         "\U0001F525 fire",
        "quote\"'<>",   "semi;colon:at@", "com,ma$",          "(paren)[b]{c}",  "tilde~!*",
        "pipe|caret^`", "..dots..",       "back\\slash",      "tab\there",      "trailing space ",
    };
    std::map<std::string, std::string> expected;
    for (int folder = 0; expected.size() < 1100; ++folder) {
        for (const std::string& name : names) {
            const std::string key = "class " + std::to_string(folder) + "/" + name;
            expected[key] = "bytes of " + key;
            put("odd", "data set+1/" + key, expected[key]);
        }
    }
    const auto origin = open("s3://odd/data set+1");
    std::vector<std::uint64_t> progress;
    const auto listed =
        test::list_objects(*origin, [&](std::uint64_t n) { progress.push_back(n); }, {});
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(listed->size(), expected.size());
    EXPECT_GE(progress.size(), 2U) << "more than one page";
    std::vector<test::FetchFuture> futures;
    for (const auto& object : *listed) {
        ASSERT_TRUE(expected.contains(object.key)) << object.key;
        futures.push_back(start_fetch(*origin, wanting(object)));
    }
    for (std::size_t i = 0; i < futures.size(); ++i) {
        const auto bytes = futures[i].get();
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(text_of(*bytes), expected[(*listed)[i].key]);
    }
}

TEST_F(OriginGateway, FetchesLargeAndEmptyObjects) {
    std::string large(33 * 1024 * 1024 + 7, '\0');
    Prng random{test::seed()};
    for (char& c : large) {
        c = static_cast<char>(random());
    }
    put("large", "large", large);
    put("large", "empty", "");
    const auto origin = open("s3://large");
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    ASSERT_EQ(listed->size(), 2U);
    for (const auto& object : *listed) {
        const auto bytes = fetch_now(*origin, wanting(object));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_TRUE(text_of(*bytes) == (object.key == "large" ? large : ""));
        EXPECT_EQ(bytes->requests, object.key == "large" ? 5U : 1U);
    }
}

TEST_F(OriginGateway, NoticesObjectsThatChangeOrVanish) {
    put("changing", "overwritten", "before");
    put("changing", "deleted", "before");
    const auto origin = open("s3://changing");
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    put("changing", "overwritten", "after.");
    ASSERT_TRUE(gateway_->remove("changing", "deleted").has_value());
    for (const auto& object : *listed) {
        const auto bytes = fetch_now(*origin, wanting(object));
        ASSERT_FALSE(bytes.has_value()) << object.key;
        EXPECT_EQ(
            bytes.error().code,
            object.key == "deleted" ? ErrorCode::kNotFound : ErrorCode::kConflict)
            << bytes.error().message;
    }
}

TEST_F(OriginGateway, ReportsWhyTheServerRefuses) {
    Credentials wrong = gateway_->credentials();
    wrong.secret_access_key += "x";
    auto listed = test::list_objects(*open("s3://odd", wrong));
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(listed.error().message, HasSubstr("403 SignatureDoesNotMatch: "));
    listed = test::list_objects(*open("s3://odd", std::nullopt));
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kForbidden);
    listed = test::list_objects(*open("s3://missing-bucket"));
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(
        listed.error().message, HasSubstr("404 NoSuchBucket: The specified bucket does not exist"));
}

}  // namespace
}  // namespace stoker::sidecar

int main(int argc, char** argv) {
    if (stoker::sidecar::gateway_program() == nullptr) {
        std::puts("NOT RUN: STOKER_VERSITYGW does not name a versitygw binary");
        return stoker::sidecar::kExitNotRun;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
