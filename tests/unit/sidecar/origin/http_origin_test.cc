#include "sidecar/origin/http_origin.h"

#include <fstream>
#include <numeric>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/http_server.h"
#include "tests/support/http_certificate.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/sidecar/origin/web_server.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using domain::ListedObject;
using test::fetch_now;
using test::text_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const SystemClock kClock;

const char* no_variables(const char* /*name*/) {
    return nullptr;
}

class HttpOriginTest : public testing::Test {
protected:
    HttpOriginTest() {
        options_.retry = {.attempts_max = 3, .backoff_first = 1ms, .backoff_max = 4ms};
    }

    std::unique_ptr<Origin> open() {
        auto origin = make_origin(server_.uri(), options_, no_variables, kClock, 1);
        EXPECT_TRUE(origin.has_value()) << origin.error().message;
        return *std::move(origin);
    }

    // The objects, or the error's message.
    std::vector<ListedObject> list() {
        auto listed = test::list_objects(*open());
        EXPECT_TRUE(listed.has_value()) << listed.error().message;
        return listed ? *listed : std::vector<ListedObject>{};
    }

    Error listing_error() {
        const auto listed = test::list_objects(*open());
        EXPECT_FALSE(listed.has_value());
        return listed ? Error{} : listed.error();
    }

    test::WebServer server_;
    OriginOptions options_;
};

TEST_F(HttpOriginTest, FetchesWhatTheIndexNames) {
    server_.put("cat/1 a%.jpg", {"?"});
    server_.put("cat/1%20a%25.jpg", {"meow", "\"v1\""});
    server_.put("index.txt", {"4\tcat/1 a%.jpg\t\"v1\"\n"});
    const auto origin = open();
    EXPECT_EQ(origin->describe(), server_.uri() + "/");
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_THAT(*listed, ElementsAre(ListedObject{"cat/1 a%.jpg", 4, "\"v1\""}));
    const auto bytes = fetch_now(*origin, {"cat/1 a%.jpg", "\"v1\"", 4});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "meow");
    EXPECT_THAT(server_.requests(), ElementsAre("GET /set/index.txt", "GET /set/cat/1%20a%25.jpg"))
        << "an index with versions needs no HEAD";
}

TEST_F(HttpOriginTest, AsksForWhatTheIndexLacks) {
    server_.put("a", {"1", "\"strong\""});
    server_.put("b", {"22", "W/\"weak\""});
    server_.put("c", {"333"});
    server_.put("d", {"4444"});
    server_.put("list/of files", {"?"});
    server_.put("list/of%20files", {"a\n2\tb\nc\n4\td\t7\n"});
    options_.index = "list/of files";
    EXPECT_THAT(
        list(),
        UnorderedElementsAre(
            ListedObject{"a", 1, "\"strong\""},
            ListedObject{"b", 2, "W/\"weak\""},
            ListedObject{"c", 3, "@1700000000"},
            ListedObject{"d", 4, "@7"}));
    EXPECT_THAT(
        server_.requests(),
        UnorderedElementsAre(
            "GET /set/list/of%20files", "HEAD /set/a", "HEAD /set/b", "HEAD /set/c"));
}

TEST_F(HttpOriginTest, ListsManyObjects) {
    std::string index;
    std::uint64_t last = 0;
    for (int i = 0; i < 500; ++i) {
        server_.put(std::to_string(i), {std::string(static_cast<std::size_t>(i), 'x'), "\"e\""});
        index += std::to_string(i) + "\n";
    }
    server_.put("index.txt", {index});
    const auto listed = test::list_objects(*open(), [&](std::uint64_t count) { last = count; });
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(listed->size(), 500U);
    EXPECT_EQ(last, 500U);
    for (const ListedObject& object : *listed) {
        EXPECT_EQ(object.key, std::to_string(object.size_bytes));
    }
}

TEST_F(HttpOriginTest, ASlowListingStopsWhenAsked) {
    server_.put("index.txt", {"a\nb\n"});
    std::atomic<int> heads = 0;
    server_.set_fault([&](const test::ScriptRequest& request, test::ScriptConnection& to) {
        if (request.method != "HEAD") {
            return false;
        }
        ++heads;
        return to.wait_for_hang_up(20s);
    });
    const auto origin = open();
    std::stop_source stop;
    const auto listed = test::list_objects(
        *origin,
        [&](std::uint64_t) { heads == 2 ? stop.request_stop() : false; },
        stop.get_token());
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kCancelled);
}

TEST_F(HttpOriginTest, AListingFailsWithTheObjectsName) {
    server_.put("index.txt", {"gone\n"});
    const Error gone = listing_error();
    EXPECT_EQ(gone.code, ErrorCode::kNotFound);
    EXPECT_EQ(
        gone.message, fmt::format("listing {}/: 'gone': the server answers 404", server_.uri()));
    server_.put("index.txt", {"5\ta\n"});
    server_.put("a", {"four", "\"v\""});
    EXPECT_THAT(
        listing_error().message, HasSubstr("'a': the object has 4 bytes and 5 in the index"));
    server_.put("index.txt", {"a\n"});
    server_.put("a", {"four"});
    server_.change([](test::WebManners& it) { it.has_times = false; });
    EXPECT_THAT(listing_error().message, HasSubstr("no ETag and no Last-Modified"));
    server_.put("index.txt", {"a\n../b\n"});
    EXPECT_THAT(listing_error().message, HasSubstr("index.txt, line 2: '../b' is not a key"));
}

TEST_F(HttpOriginTest, WithoutAnIndexTheListingSaysSo) {
    const Error error = listing_error();
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_THAT(error.message, HasSubstr("'index.txt': the server answers 404"));
}

TEST_F(HttpOriginTest, ReadsSlicesAndLargeObjectsInParts) {
    std::string bytes((17U << 20U) + 5, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<char>(i * 7 % 251);
    }
    server_.put("large", {bytes, "\"v\""});
    const auto origin = open();
    const auto whole = fetch_now(*origin, {"large", "\"v\"", bytes.size()});
    ASSERT_TRUE(whole.has_value()) << whole.error().message;
    EXPECT_EQ(text_of(*whole), bytes);
    EXPECT_EQ(whole->requests, 3U) << "ranges of 8 MiB";
    OriginFetch slice{"large", "\"v\"", 1000};
    slice.slice = OriginSlice{9'999'999, bytes.size()};
    const auto part = fetch_now(*origin, slice);
    ASSERT_TRUE(part.has_value()) << part.error().message;
    EXPECT_EQ(text_of(*part), bytes.substr(9'999'999, 1000));
}

TEST_F(HttpOriginTest, CutsSlicesOutOfWholeObjectsWithoutRanges) {
    server_.change([](test::WebManners& it) { it.has_ranges = false; });
    server_.put("small", {"0123456789", "\"v\""});
    const auto origin = open();
    OriginFetch slice{"small", "\"v\"", 4};
    slice.slice = OriginSlice{3, 10};
    const auto part = fetch_now(*origin, slice);
    ASSERT_TRUE(part.has_value()) << part.error().message;
    EXPECT_EQ(text_of(*part), "3456");
    server_.put("large", {std::string((16U << 20U) + 1, 'x'), "\"v\""});
    slice.key = "large";
    slice.slice->object_bytes = (16U << 20U) + 1;
    const auto refused = fetch_now(*origin, slice);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("does not answer range requests"));
}

TEST_F(HttpOriginTest, ACachedBlockIsARange) {
    server_.put("index.txt", {"2097157\tlarge\t\"v\"\n"});
    server_.put(
        "large", {std::string(1U << 20U, 'a') + std::string(1U << 20U, 'b') + "ccccc", "\"v\""});
    options_.format = domain::SampleFormat::kBlocks;
    options_.block_bytes = mib(1);
    const auto origin = open();
    const auto listed = test::list_objects(*origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    ASSERT_EQ(listed->size(), 3U);
    const ListedObject& last = listed->back();
    const auto bytes = fetch_now(*origin, {last.key, last.etag, last.size_bytes});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "ccccc");
}

TEST_F(HttpOriginTest, SendsCredentialsOverTlsOnly) {
    const test::Certificate certificate = test::make_certificate("localhost");
    const test::TempFolder folder;
    std::ofstream{folder.path() + "/ca.crt"} << certificate.cert_pem;
    std::ofstream{folder.path() + "/token"} << "t0k";
    std::string given;
    http::ServerOptions server_options;
    server_options.address = "127.0.0.1";
    server_options.cert_pem = certificate.cert_pem;
    server_options.key_pem = certificate.key_pem;
    const auto server =
        http::HttpServer::start(server_options, [&](const http::ServerRequest& request) {
            const std::string* header = http::find_header(request.headers, "Authorization");
            given = header == nullptr ? "none" : *header;
            return http::ServerResponse{.body = "1\ta\t\"v\"\n"};
        });
    ASSERT_TRUE(server.has_value()) << server.error().message;
    options_.ca_file = folder.path() + "/ca.crt";
    options_.credentials_directory = folder.path();
    const auto origin = make_origin(
        fmt::format("https://localhost:{}/set", (*server)->port()),
        options_,
        no_variables,
        kClock,
        1);
    ASSERT_TRUE(origin.has_value()) << origin.error().message;
    EXPECT_TRUE((*origin)->has_key());
    const auto listed = test::list_objects(**origin);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(given, "Bearer t0k");
    const auto plain = make_origin(server_.uri(), options_, no_variables, kClock, 1);
    ASSERT_FALSE(plain.has_value());
    EXPECT_THAT(plain.error().message, HasSubstr("over https:// only"));
}

}  // namespace
}  // namespace stoker::sidecar
