#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/origin/http_origin.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/unit/sidecar/origin/web_server.h"

// A web server that fails or sends wrong data must never cause wrong bytes.
namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using test::fetch_now;
using test::ScriptConnection;
using test::ScriptRequest;
using test::text_of;
using testing::HasSubstr;

const SystemClock kClock;

class HttpOriginFaults : public testing::Test {
protected:
    HttpOriginFaults() {
        OriginOptions options;
        options.retry = {.attempts_max = 3, .backoff_first = 1ms, .backoff_max = 4ms};
        options.stall_timeout = 300ms;
        auto origin = make_http_origin(server_.uri(), options, kClock, 1);
        EXPECT_TRUE(origin.has_value());
        origin_ = *std::move(origin);
        server_.put("a", {"0123456789", "\"v\""});
    }

    // Answers the first `count` requests by `fault`.
    void fail_first(int count, test::WebServer::Fault fault) {
        const auto left = std::make_shared<std::atomic<int>>(count);
        server_.set_fault([left, fault](const ScriptRequest& request, ScriptConnection& to) {
            return (*left)-- > 0 && fault(request, to);
        });
    }

    Result<OriginBytes> fetch(std::string etag = "\"v\"") {
        return fetch_now(*origin_, {"a", std::move(etag), 10});
    }

    test::WebServer server_;
    std::unique_ptr<Origin> origin_;
};

TEST_F(HttpOriginFaults, RepeatsATruncatedBody) {
    fail_first(1, [](const ScriptRequest&, ScriptConnection& to) {
        to.send("HTTP/1.1 200 X\r\nETag: \"v\"\r\nContent-Length: 10\r\n\r\n0123");
        to.hang_up();
        return true;
    });
    const auto bytes = fetch();
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "0123456789");
    EXPECT_EQ(bytes->requests, 2U);
}

TEST_F(HttpOriginFaults, RepeatsAStalledBodyAndA503) {
    std::atomic<int> seen = 0;
    fail_first(2, [&](const ScriptRequest&, ScriptConnection& to) {
        if (seen++ == 0) {
            to.send("HTTP/1.1 200 X\r\nETag: \"v\"\r\nContent-Length: 10\r\n\r\n0123");
            to.wait_for_hang_up(10s);
        } else {
            to.reply(503, "busy", "Retry-After: 0\r\n");
        }
        return true;
    });
    const auto bytes = fetch();
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "0123456789");
    EXPECT_EQ(bytes->requests, 3U);
}

TEST_F(HttpOriginFaults, AShorterOrLongerBodyIsAConflict) {
    for (const char* body : {"012345678", "0123456789x"}) {
        fail_first(1, [body](const ScriptRequest&, ScriptConnection& to) {
            to.send(
                std::string{"HTTP/1.1 200 X\r\nETag: \"v\"\r\nConnection: close\r\n\r\n"} + body);
            to.hang_up();
            return true;
        });
        const auto bytes = fetch();
        ASSERT_FALSE(bytes.has_value()) << body;
        EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
    }
}

TEST_F(HttpOriginFaults, AChangedFileIsAConflict) {
    server_.put("a", {"abcdefghij", "\"w\""});
    for (const bool heeds : {true, false}) {
        server_.change([&](test::WebManners& it) { it.heeds_conditions = heeds; });
        const auto bytes = fetch();
        ASSERT_FALSE(bytes.has_value());
        EXPECT_EQ(bytes.error().code, ErrorCode::kConflict) << bytes.error().message;
    }
    server_.put("a", {"abcdefghij", "", WallTime{1'700'000'001s}});
    const auto dated = fetch("@1700000000");
    ASSERT_FALSE(dated.has_value());
    EXPECT_EQ(dated.error().code, ErrorCode::kConflict) << dated.error().message;
}

TEST_F(HttpOriginFaults, AFileOfThisSecondWaits) {
    server_.put("a", {"0123456789"});
    server_.change([](test::WebManners& it) { it.now = WallTime{1'700'000'000s}; });
    const auto early = fetch("@1700000000");
    ASSERT_FALSE(early.has_value());
    EXPECT_EQ(early.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(early.error().message, HasSubstr("written just now"));
    server_.change([](test::WebManners& it) { it.now = WallTime{1'700'000'002s}; });
    EXPECT_TRUE(fetch("@1700000000").has_value());
}

TEST_F(HttpOriginFaults, WeakEtagsAreComparedButNoCondition) {
    server_.put("a", {"0123456789", "W/\"v\""});
    const auto same = fetch("W/\"v\"");
    ASSERT_TRUE(same.has_value()) << same.error().message;
    server_.put("a", {"0123456789", "W/\"w\""});
    const auto other = fetch("W/\"v\"");
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().code, ErrorCode::kConflict);
}

TEST_F(HttpOriginFaults, AnotherRangeThanAskedIsAConflict) {
    fail_first(1, [](const ScriptRequest&, ScriptConnection& to) {
        to.reply(206, "4567", "ETag: \"v\"\r\nContent-Range: bytes 4-7/10\r\n");
        return true;
    });
    OriginFetch slice{"a", "\"v\"", 4};
    slice.slice = OriginSlice{3, 10};
    const auto bytes = fetch_now(*origin_, slice);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
    EXPECT_THAT(bytes.error().message, HasSubstr("'bytes 4-7/10' instead of 'bytes 3-6/10'"));
}

TEST_F(HttpOriginFaults, CompressionIsRefused) {
    server_.change([](test::WebManners& it) { it.more_headers = "Content-Encoding: gzip\r\n"; });
    const auto bytes = fetch();
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(bytes.error().message, HasSubstr("turn compression off"));
}

TEST_F(HttpOriginFaults, TheIndexIsReadAgainAfterACut) {
    server_.put("index.txt", {"10\ta\t\"v\"\n10\tb\t\"v\"\n"});
    fail_first(1, [](const ScriptRequest&, ScriptConnection& to) {
        to.send("HTTP/1.1 200 X\r\nContent-Length: 18\r\n\r\n10\ta\t\"v\"\n");
        to.hang_up();
        return true;
    });
    const auto listed = test::list_objects(*origin_);
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    EXPECT_EQ(listed->size(), 2U);
}

// An answer without a length ends where its connection ends.
TEST_F(HttpOriginFaults, AnIndexThatCouldBeCutUnnoticedIsRefused) {
    std::string head = "Connection: close\r\n\r\n10\ta\t\"v\"\n";
    server_.set_fault([&head](const ScriptRequest&, ScriptConnection& to) {
        to.send("HTTP/1.1 200 X\r\n" + head);
        to.hang_up();
        return true;
    });
    const auto cut = test::list_objects(*origin_);
    ASSERT_FALSE(cut.has_value());
    EXPECT_EQ(cut.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(cut.error().message, HasSubstr("neither Content-Length nor chunks"));
    head = "Transfer-Encoding: chunked\r\n\r\n9\r\n10\ta\t\"v\"\n\r\n0\r\n\r\n";
    const auto whole = test::list_objects(*origin_);
    ASSERT_TRUE(whole.has_value()) << whole.error().message;
    EXPECT_EQ(whole->size(), 1U);
}

TEST_F(HttpOriginFaults, APageIsNeitherAnIndexNorAnObjectOfUnknownSize) {
    server_.put("index.txt", {"<html>\n<h1>Sign in</h1>\n"});
    server_.change([](test::WebManners& it) { it.more_headers = "Content-Type: text/html\r\n"; });
    const auto index = test::list_objects(*origin_);
    ASSERT_FALSE(index.has_value());
    EXPECT_THAT(
        index.error().message,
        HasSubstr("'index.txt': the server answers with a page (text/html)"));
    std::string line = "a\n";
    server_.set_fault([&line](const ScriptRequest& request, ScriptConnection& to) {
        const bool is_index = request.target == "/set/index.txt";
        if (is_index) {
            to.reply(200, line, "Content-Type: text/plain\r\n");
        }
        return is_index;
    });
    const auto object = test::list_objects(*origin_);
    ASSERT_FALSE(object.has_value());
    EXPECT_THAT(object.error().message, HasSubstr("'a': the server answers with a page"));
    line = "10\ta\n";
    EXPECT_TRUE(test::list_objects(*origin_).has_value()) << "a page may be a sample";
}

TEST_F(HttpOriginFaults, RedirectsAreFollowed) {
    server_.put("moved", {"0123456789", "\"v\""});
    server_.set_fault([](const ScriptRequest& request, ScriptConnection& to) {
        if (request.target != "/set/a") {
            return false;
        }
        to.reply(302, "", "Location: /set/moved\r\n");
        return true;
    });
    const auto bytes = fetch();
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(text_of(*bytes), "0123456789");
}

}  // namespace
}  // namespace stoker::sidecar
