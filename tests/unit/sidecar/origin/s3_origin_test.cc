#include "sidecar/origin/s3_origin.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/http/http_server.h"
#include "tests/support/fake_s3.h"
#include "tests/support/http_certificate.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using domain::ListedObject;
using test::fetch_now;
using test::start_fetch;
using test::text_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const SystemClock kClock;
const Credentials kKeys{"AKID", "s3cr3t/key+", "session"};

class S3OriginTest : public testing::Test {
protected:
    explicit S3OriginTest(test::FakeS3Options server = {})
        : server_(std::move(server)) {
        options_.retry = {.attempts_max = 4, .backoff_first = 1ms, .backoff_max = 4ms};
        server_.make_bucket("b");
    }

    std::unique_ptr<Origin> open(
        const std::string& uri = "s3://b", std::optional<Credentials> keys = std::nullopt) {
        if (options_.endpoint.empty()) {
            options_.endpoint = server_.endpoint();
        }
        const Environment environment = [keys](const char* name) -> const char* {
            const std::string_view wanted = name;
            if (!keys) {
                return nullptr;
            }
            return wanted == "AWS_ACCESS_KEY_ID"       ? keys->access_key_id.c_str()
                   : wanted == "AWS_SECRET_ACCESS_KEY" ? keys->secret_access_key.c_str()
                   : wanted == "AWS_SESSION_TOKEN"     ? keys->session_token.c_str()
                                                       : nullptr;
        };
        auto origin = make_origin(uri, options_, environment, kClock, 1);
        EXPECT_TRUE(origin.has_value()) << origin.error().message;
        return *std::move(origin);
    }

    OriginFetch put(const std::string& key, const std::string& bytes) {
        return {key, server_.put("b", key, bytes), bytes.size()};
    }

    test::FakeS3 server_;
    OriginOptions options_;
};

TEST_F(S3OriginTest, FetchesListedObjects) {
    const OriginFetch wanted = put("cat/1.jpg", "meow");
    const auto origin = open();
    EXPECT_EQ(origin->describe(), "s3://b/ at " + server_.endpoint());
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_THAT(*listed, ElementsAre(ListedObject{"cat/1.jpg", 4, wanted.etag}));
    const auto bytes = fetch_now(*origin, wanted);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "meow");
    EXPECT_EQ(bytes->requests, 1U);
    EXPECT_GT(bytes->first_byte, Duration::zero());
}

TEST_F(S3OriginTest, ListsBelowThePrefixWithRelativeKeysAndWithoutFolders) {
    put("train/a", "1");
    put("train/x/b", "2");
    put("train/", "");
    put("train/x/", "");
    put("trainer/c", "3");
    put("other", "4");
    const auto origin = open("s3://b/train");
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    std::vector<std::string> keys;
    for (const auto& object : *listed) {
        keys.push_back(object.key);
    }
    EXPECT_THAT(keys, UnorderedElementsAre("a", "x/b"));
    const auto bytes = fetch_now(*origin, {"x/b", (*listed)[1].etag, 1});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "2");
}

class S3OriginPages : public S3OriginTest {
protected:
    S3OriginPages()
        : S3OriginTest({.page_objects = 10}) {}
};

TEST_F(S3OriginPages, ListsEveryPageAndReportsProgress) {
    for (int i = 0; i < 35; ++i) {
        put("k+ %" + std::to_string(i), std::to_string(i));
    }
    std::vector<std::uint64_t> progress;
    const auto listed =
        test::list_objects(*open(), [&](std::uint64_t count) { progress.push_back(count); }, {});
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(listed->size(), 35U);
    EXPECT_THAT(progress, ElementsAre(10, 20, 30, 35));
    EXPECT_EQ(server_.request_count("list"), 4U);
}

TEST_F(S3OriginPages, AListingCanBeStopped) {
    for (int i = 0; i < 35; ++i) {
        put("k" + std::to_string(i), "");
    }
    std::stop_source stop;
    const auto listed = test::list_objects(
        *open(), [&](std::uint64_t) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kCancelled);
}

TEST_F(S3OriginPages, RetriesAFailedPage) {
    for (int i = 0; i < 35; ++i) {
        put("k" + std::to_string(i), "");
    }
    server_.add_fault({.operation = "list", .skip = 1, .times = 2, .status = 503});
    server_.add_fault({.operation = "list", .skip = 3, .cut_after = 100});
    const auto listed = test::list_objects(*open());
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(listed->size(), 35U);
    EXPECT_EQ(server_.request_count("list"), 7U);
}

class S3OriginSigned : public S3OriginTest {
protected:
    S3OriginSigned()
        : S3OriginTest({.credentials = kKeys}) {}
};

// The server takes the path literally, so it refuses a client that normalises or encodes twice.
TEST_F(S3OriginSigned, OddKeysComeBackUnchanged) {
    const std::vector<std::string> keys = {
        "plain",     "with space",    "plus+sign",        "percent%41%",
        "a/../b",    "./c",           "double//slash",    "question?mark",
        "hash#tag",  "am&per=sand",   "\u00fcml\u00e4ut", "\u96ea/\U0001F525",
        "quote\"'",  "back\\slash",   "tilde~.-_",        "semi;colon:at@",
        "new\nline", "comma,dollar$", "(paren)[brack]",   "trailing.",
    };
    std::vector<OriginFetch> wanted;
    for (const std::string& key : keys) {
        wanted.push_back(put("root dir/" + key, "bytes of " + key));
    }
    const auto origin = open("s3://b/root dir", kKeys);
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    ASSERT_EQ(listed->size(), keys.size());
    for (const ListedObject& object : *listed) {
        SCOPED_TRACE(object.key);
        EXPECT_TRUE(std::find(keys.begin(), keys.end(), object.key) != keys.end());
        const auto bytes = fetch_now(*origin, {object.key, object.etag, object.size_bytes});
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(text_of(*bytes), "bytes of " + object.key);
    }
}

TEST_F(S3OriginSigned, TheBucketMayBeInTheHostName) {
    const OriginFetch wanted = put("a folder/k", "v");
    options_.endpoint = "http://localhost:" + std::to_string(server_.port());
    options_.path_style = false;
    const auto origin = open("s3://b/a folder", kKeys);
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    ASSERT_EQ(listed->size(), 1U);
    const auto bytes = fetch_now(*origin, {"k", wanted.etag, 1});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "v");
}

TEST_F(S3OriginSigned, WrongOrMissingCredentialsAreForbiddenQuotingTheOrigin) {
    const OriginFetch wanted = put("k", "v");
    Credentials wrong = kKeys;
    wrong.secret_access_key = "other";
    const std::vector<std::pair<std::optional<Credentials>, std::string>> cases = {
        {std::nullopt, "403 AccessDenied: Access Denied"},
        {Credentials{"nobody", "x", ""}, "403 InvalidAccessKeyId: "},
        {wrong, "403 SignatureDoesNotMatch: "},
    };
    for (const auto& [keys, words] : cases) {
        const auto origin = open("s3://b", keys);
        const auto listed = test::list_objects(*origin);
        ASSERT_FALSE(listed.has_value());
        EXPECT_EQ(listed.error().code, ErrorCode::kForbidden);
        EXPECT_THAT(listed.error().message, HasSubstr(words));
        const auto bytes = fetch_now(*origin, wanted);
        ASSERT_FALSE(bytes.has_value());
        EXPECT_EQ(bytes.error().code, ErrorCode::kForbidden);
        EXPECT_THAT(bytes.error().message, HasSubstr(words));
    }
    EXPECT_EQ(server_.request_count("list"), cases.size()) << "asking again would not help";
}

TEST_F(S3OriginTest, FetchesLargeObjectsInParallelRanges) {
    std::string large(40 * 1024 * 1024 + 12345, '\0');
    Prng random{test::seed()};
    for (std::size_t i = 0; i < large.size(); i += 4096) {
        large[i] = static_cast<char>(random());
    }
    const OriginFetch wanted = put("large", large);
    const auto bytes = fetch_now(*open(), wanted);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_TRUE(text_of(*bytes) == large);
    EXPECT_EQ(bytes->requests, 6U) << "of 8 MiB";
    EXPECT_EQ(server_.requests().front().status, 206);
}

// LoadTime fits the time of one request by its size.
TEST_F(S3OriginTest, TimesTheRequestUnlessTheObjectTookSeveral) {
    const auto origin = open();
    for (const std::size_t size : {0UL, 4UL, 8UL << 20U}) {
        const auto bytes = fetch_now(*origin, put(std::to_string(size), std::string(size, 'x')));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(bytes->requests, 1U);
        EXPECT_GT(bytes->request_time, Duration::zero()) << size;
        EXPECT_GE(bytes->request_time, bytes->first_byte) << size;
    }
    const auto parts = fetch_now(*origin, put("parts", std::string((32U << 20U) + 1, 'x')));
    ASSERT_TRUE(parts.has_value()) << parts.error().message;
    EXPECT_EQ(parts->requests, 5U) << "of 8 MiB";
    EXPECT_EQ(parts->request_time, Duration::zero());
}

TEST_F(S3OriginTest, FetchesEmptyObjects) {
    const auto bytes = fetch_now(*open(), put("empty", ""));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_TRUE(bytes->payload.empty());
}

TEST_F(S3OriginTest, StaysWithinTheRequestLimitAndFinishesAll) {
    options_.max_in_flight = 6;
    const auto origin = open();
    std::vector<OriginFetch> wanted;
    for (int i = 0; i < 100; ++i) {
        wanted.push_back(
            put(std::to_string(i), std::string(static_cast<std::size_t>(i * 100), 'x')));
    }
    server_.add_fault({.operation = "get", .times = -1, .delay = 2ms});
    std::vector<test::FetchFuture> futures;
    for (const OriginFetch& one : wanted) {
        futures.push_back(start_fetch(*origin, one));
    }
    for (std::size_t i = 0; i < futures.size(); ++i) {
        const auto bytes = futures[i].get();
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(bytes->payload.size(), wanted[i].size_bytes);
    }
    EXPECT_LE(server_.most_at_once(), 6);
    EXPECT_GE(server_.most_at_once(), 4);
    EXPECT_LE(server_.connection_count(), 6) << "connections are reused";
}

// Fetches all samples at once; true if all arrive.
bool fetch_all_of(Origin& origin, const std::vector<OriginFetch>& wanted) {
    std::vector<test::FetchFuture> futures;
    for (const OriginFetch& one : wanted) {
        futures.push_back(start_fetch(origin, one));
    }
    return std::ranges::all_of(futures, [](auto& future) { return future.get().has_value(); });
}

TEST_F(S3OriginTest, SendsFewerRequestsAfterPushBacks) {
    options_.requests_per_fetch = 1.1;
    const auto origin = open();
    EXPECT_EQ(origin->capacity().fetches, 64U);
    EXPECT_EQ(origin->capacity().requests, 71U) << "rounded up";
    server_.add_fault({.operation = "get", .times = 10, .status = 503, .delay = 200ms});
    server_.add_fault({.operation = "get", .times = 60, .delay = 600ms});  // in flight meanwhile
    std::vector<OriginFetch> wanted;
    for (int i = 0; i < 70; ++i) {
        wanted.push_back(put(std::to_string(i), "x"));
    }
    EXPECT_TRUE(fetch_all_of(*origin, wanted));
    EXPECT_EQ(origin->capacity().fetches, 45U);
    EXPECT_EQ(origin->capacity().requests, 50U);
}

TEST_F(S3OriginTest, TriesMoreRequestsAtOnceThanTheInitial64) {
    const auto origin = open();
    server_.add_fault({.operation = "get", .times = -1, .delay = 100ms});
    std::vector<OriginFetch> wanted;
    for (int i = 0; i < 600; ++i) {
        wanted.push_back(put(std::to_string(i), "x"));
    }
    EXPECT_TRUE(fetch_all_of(*origin, wanted));
    EXPECT_GT(server_.most_at_once(), 64) << "it has tried more";
}

TEST_F(S3OriginTest, AHugeObjectDoesNotDelaySmallOnes) {
    options_.max_in_flight = 8;
    const OriginFetch huge = put("huge", std::string(64 * 1024 * 1024, 'x'));
    server_.add_fault({.key = "huge", .times = -1, .bytes_per_second = 1'000'000});
    const auto origin = open();
    auto huge_future = start_fetch(*origin, huge);
    std::vector<test::FetchFuture> small;
    for (int i = 0; i < 50; ++i) {
        small.push_back(start_fetch(*origin, put("s" + std::to_string(i), "small")));
    }
    for (auto& future : small) {
        EXPECT_TRUE(future.get().has_value());
    }
    EXPECT_EQ(huge_future.wait_for(0s), std::future_status::timeout) << "64 s at this pace";
}

TEST_F(S3OriginTest, LeavesTooLargeObjectsToTheClient) {
    options_.object_bytes_max = Bytes{1000};
    const auto origin = open();
    EXPECT_TRUE(fetch_now(*origin, put("fits", std::string(1000, 'x'))).has_value());
    const auto refused = fetch_now(*origin, put("does not", std::string(1001, 'x')));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(refused.error().message, HasSubstr("'does not' of s3://b/"));
    EXPECT_THAT(refused.error().message, HasSubstr("read it at the origin"));
    EXPECT_EQ(server_.request_count("get"), 1U);
}

TEST_F(S3OriginTest, DestructionFinishesEveryFetch) {
    server_.add_fault({.operation = "get", .times = -1, .delay = 50ms});
    auto origin = open();
    std::vector<test::FetchFuture> futures;
    for (int i = 0; i < 200; ++i) {
        futures.push_back(start_fetch(*origin, put(std::to_string(i), "x")));
    }
    origin.reset();
    int cancelled = 0;
    for (auto& future : futures) {
        const auto result = future.get();
        cancelled += !result && result.error().code == ErrorCode::kCancelled ? 1 : 0;
    }
    EXPECT_GT(cancelled, 100);
}

constexpr const char* kListing =
    "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>k</Key><Size>1</Size>"
    "<ETag>{}</ETag></Contents></ListBucketResult>";

std::unique_ptr<http::HttpServer> serve_listing(
    const std::string& etag, http::ServerOptions server_options = {}) {
    const auto answer =
        [text = fmt::format(fmt::runtime(kListing), etag)](const http::ServerRequest&) {
            return http::ServerResponse{200, "application/xml", text, {}};
        };
    return http::HttpServer::start(std::move(server_options), answer).value();
}

TEST_F(S3OriginTest, ErrorForAnObjectWithoutAnEtagNamesTheObject) {
    const auto server = serve_listing("");
    options_.endpoint = "http://localhost:" + std::to_string(server->port());
    const auto listed = test::list_objects(*open());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(listed.error().message, HasSubstr("'k' has no ETag"));
}

TEST_F(S3OriginTest, TrustsOnlyTheGivenCertificates) {
    const auto mine = test::make_certificate("mine");
    const auto server = serve_listing("e", {.cert_pem = mine.cert_pem, .key_pem = mine.key_pem});
    options_.endpoint = "https://localhost:" + std::to_string(server->port());
    const auto strange = test::list_objects(*open());
    ASSERT_FALSE(strange.has_value());
    EXPECT_EQ(strange.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(strange.error().message, HasSubstr("certificate"));
    options_.ca_file = testing::TempDir() + "/stoker-ca-" + std::to_string(::getpid());
    std::ofstream{options_.ca_file} << mine.cert_pem;
    const auto trusted = test::list_objects(*open());
    EXPECT_TRUE(trusted.has_value()) << trusted.error().message;
    std::filesystem::remove(options_.ca_file);
}

TEST(MakeOrigin, RefusesUnknownSources) {
    const Environment nothing = [](const char*) { return nullptr; };
    for (const char* uri : {"", "gs://b", "ftp://x/y", "s3:/b", "file://host/path", "/data"}) {
        const auto origin = make_origin(uri, {}, nothing, kClock, 1);
        ASSERT_FALSE(origin.has_value()) << uri;
        EXPECT_EQ(origin.error().code, ErrorCode::kInvalidArgument);
    }
}

TEST(MakeOrigin, RefusesHalfACredential) {
    const Environment half = [](const char* name) {
        return std::string_view{name} == "AWS_ACCESS_KEY_ID" ? "id" : nullptr;
    };
    const auto origin = make_origin("s3://b", {}, half, kClock, 1);
    ASSERT_FALSE(origin.has_value());
    EXPECT_THAT(origin.error().message, HasSubstr("AWS_SECRET_ACCESS_KEY"));
}

}  // namespace
}  // namespace stoker::sidecar
