#include "tests/support/fake_s3.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/http/http_client.h"

namespace stoker::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const SystemClock kClock;

class FakeS3Test : public testing::Test {
protected:
    explicit FakeS3Test(FakeS3Options options = {})
        : server_(std::move(options)) {
        etag_ = server_.put("b", "a/b c+d", "0123456789");
    }

    Result<http::HttpResponse> send(
        const std::string& method,
        const std::string& target,
        http::Headers headers = {},
        std::string body = "") {
        http::HttpRequest request;
        request.method = method;
        request.url = server_.endpoint() + target;
        request.headers = std::move(headers);
        request.body = std::move(body);
        return client_->call(std::move(request));
    }

    http::HttpResponse get(const std::string& target, http::Headers headers = {}) {
        const auto response = send("GET", target, std::move(headers));
        EXPECT_TRUE(response.has_value()) << response.error().message;
        return response.value_or(http::HttpResponse{});
    }

    FakeS3 server_;
    std::string etag_;
    std::unique_ptr<http::HttpClient> client_ = http::make_curl_client({}, kClock).value();
};

TEST_F(FakeS3Test, ServesObjectsWithTheirMd5) {
    const auto response = get("/b/a/b%20c%2Bd");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "0123456789");
    EXPECT_EQ(*http::find_header(response.headers, "ETag"), "\"781e5e245d69b566979b86e28d23f2c7\"");
    EXPECT_EQ(get("/b/none").status, 404);
    EXPECT_THAT(get("/none/a").body, HasSubstr("<Code>NoSuchBucket</Code>"));
}

TEST_F(FakeS3Test, ServesRangesAndPreconditions) {
    const auto part = get("/b/a/b%20c%2Bd", {{"Range", "bytes=3-5"}});
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "345");
    EXPECT_EQ(*http::find_header(part.headers, "Content-Range"), "bytes 3-5/10");
    EXPECT_EQ(get("/b/a/b%20c%2Bd", {{"Range", "bytes=8-99"}}).body, "89");
    EXPECT_EQ(get("/b/a/b%20c%2Bd", {{"Range", "bytes=10-11"}}).status, 416);
    EXPECT_EQ(get("/b/a/b%20c%2Bd", {{"If-Match", "\"" + etag_ + "\""}}).status, 200);
    EXPECT_EQ(get("/b/a/b%20c%2Bd", {{"If-Match", "\"x\""}}).status, 412);
}

class FakeS3Pages : public FakeS3Test {
protected:
    FakeS3Pages()
        : FakeS3Test({.page_objects = 2}) {}
};

TEST_F(FakeS3Pages, ListsInOrderPageByPage) {
    server_.put("b", "a/2", "");
    server_.put("b", "a/3", "");
    server_.put("b", "b", "");
    const auto first = get("/b/?list-type=2&encoding-type=url&prefix=a%2F").body;
    EXPECT_THAT(first, HasSubstr("<Key>a/2</Key>"));
    EXPECT_THAT(first, HasSubstr("<Key>a/3</Key>"));
    EXPECT_THAT(first, HasSubstr("<IsTruncated>true</IsTruncated>"));
    EXPECT_THAT(first, HasSubstr("<NextContinuationToken>a%2F3</NextContinuationToken>"));
    const auto second =
        get("/b/?list-type=2&encoding-type=url&prefix=a%2F&continuation-token=a%252F3").body;
    EXPECT_THAT(second, HasSubstr("<Key>a/b+c%2Bd</Key>"));
    EXPECT_THAT(second, HasSubstr("<IsTruncated>false</IsTruncated>"));
}

TEST_F(FakeS3Test, FaultsAffectTheSelectedRequestsAsOftenAsAsked) {
    server_.add_fault({.operation = "get", .key = "a/*", .skip = 1, .times = 2, .status = 503});
    std::vector<int> statuses;
    for (int i = 0; i < 4; ++i) {
        statuses.push_back(get("/b/a/b%20c%2Bd").status);
    }
    EXPECT_THAT(statuses, testing::ElementsAre(200, 503, 503, 200));
    server_.add_fault({.key = "other", .times = -1, .status = 500});
    EXPECT_EQ(get("/b/a/b%20c%2Bd").status, 200);
    EXPECT_EQ(get("/b/other").status, 500);
    server_.clear_faults();
    EXPECT_EQ(get("/b/other").status, 404);
}

TEST_F(FakeS3Test, EveryKindOfFaultChangesTheAnswer) {
    const std::string target = "/b/a/b%20c%2Bd";
    server_.add_fault({.status = 503, .retry_after = "7"});
    EXPECT_EQ(*http::find_header(get(target).headers, "Retry-After"), "7");
    server_.add_fault({.etag = "other"});
    EXPECT_EQ(*http::find_header(get(target).headers, "ETag"), "\"other\"");
    server_.add_fault({.corrupt = true});
    const std::string corrupt = get(target).body;
    EXPECT_EQ(corrupt.size(), 10U);
    EXPECT_NE(corrupt, "0123456789");
    server_.add_fault({.length_change = -4});
    EXPECT_EQ(get(target).body, "012345");
    server_.add_fault({.length_change = 3});
    EXPECT_EQ(get(target).body, "0123456789!!!");
    server_.add_fault({.cut_after = 4});
    EXPECT_FALSE(send("GET", target).has_value());
    server_.add_fault({.reset = true});
    // The client repeats a GET whose pooled connection was reset, so only the log shows the fault.
    server_.clear_requests();
    static_cast<void>(send("GET", target));
    EXPECT_GE(server_.request_count("get"), 1U);
    server_.clear_faults();
    server_.add_fault({.delay = 100ms});
    auto started = std::chrono::steady_clock::now();
    get(target);
    EXPECT_GE(std::chrono::steady_clock::now() - started, 100ms);
    server_.add_fault({.bytes_per_second = 100});
    started = std::chrono::steady_clock::now();
    EXPECT_EQ(get(target).body, "0123456789");
    EXPECT_GE(std::chrono::steady_clock::now() - started, 80ms);
}

TEST_F(FakeS3Test, OtherProcessesCanReadTheCountersAndSetFaults) {
    get("/b/a/b%20c%2Bd");
    get("/b/none");
    get("/b/?list-type=2");
    EXPECT_EQ(
        get("/__stats").body,
        "{\"connections\":1,\"errors\":1,\"get\":2,\"get_bytes\":10,\"list\":1,\"put\":0}\n");
    ASSERT_EQ(send("POST", "/__faults", {}, "status=500\nstatus=404,key=x\n")->status, 200);
    EXPECT_EQ(get("/b/a/b%20c%2Bd").status, 500);
    EXPECT_EQ(send("POST", "/__faults", {}, "nonsense")->status, 400);
    send("DELETE", "/__faults").value();
    send("DELETE", "/__stats").value();
    EXPECT_THAT(get("/__stats").body, HasSubstr("\"get\":0"));
}

TEST(FakeS3Fault, IsReadFromText) {
    const auto fault = parse_fault(
        "operation=list,key=a/*,skip=2,times=-1,status=503,code=X,retry_after=Sun 06,delay_ms=20,"
        "cut_after=5,reset=true,etag=e,corrupt=1,length_change=-3,bytes_per_second=9,"
        "ignore_if_match=true,ignore_range=false");
    ASSERT_TRUE(fault.has_value()) << fault.error().message;
    EXPECT_TRUE(fault->matches("list", "a/b"));
    EXPECT_FALSE(fault->matches("get", "a/b"));
    EXPECT_FALSE(fault->matches("list", "b"));
    EXPECT_EQ(fault->skip, 2);
    EXPECT_EQ(fault->times, -1);
    EXPECT_EQ(fault->retry_after, "Sun 06");
    EXPECT_EQ(fault->delay, 20ms);
    EXPECT_EQ(fault->cut_after, 5U);
    EXPECT_EQ(fault->length_change, -3);
    EXPECT_TRUE(fault->reset && fault->corrupt && fault->ignore_if_match && !fault->ignore_range);
    for (const char* bad : {"status", "status=x", "what=1", "reset=maybe", "skip=1x"}) {
        EXPECT_FALSE(parse_fault(bad).has_value()) << bad;
    }
}

TEST(FakeS3Directory, IsServedFromTheFirstRequest) {
    const auto root = std::filesystem::path{testing::TempDir()} /
                      ("stoker-fake-s3-" + std::to_string(::getpid()));
    std::filesystem::create_directories(root / "bucket/folder");
    std::ofstream{root / "bucket/folder/file"} << "text";
    FakeS3 server{{.directory = root}};
    ASSERT_TRUE(server.loaded().has_value());
    const auto client = http::make_curl_client({}, kClock).value();
    http::HttpRequest request;
    request.url = server.endpoint() + "/bucket/folder/file";
    EXPECT_EQ(client->call(std::move(request))->body, "text");
    std::filesystem::remove_all(root);
    EXPECT_FALSE(FakeS3{{.directory = root}}.loaded().has_value());
}

}  // namespace
}  // namespace stoker::test
