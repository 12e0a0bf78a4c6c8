#include "common/http/http_server.h"

#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/http_client.h"
#include "tests/support/http_certificate.h"
#include "tests/support/http_raw_client.h"

namespace stoker::http {
namespace {

using namespace std::chrono_literals;
using test::HttpRawClient;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Duration kPatience = 20s;
const SystemClock kClock;

std::unique_ptr<HttpServer> serve(Handler handler, ServerOptions options = {}) {
    auto server = HttpServer::start(std::move(options), std::move(handler));
    EXPECT_TRUE(server.has_value()) << server.error().message;
    return *std::move(server);
}

ServerResponse echo(const ServerRequest& request) {
    return {200, "text/plain", request.method + " " + request.target + " " + request.body, {}};
}

Result<HttpResponse> fetch(
    const std::string& url, ClientOptions options = {}, HttpRequest request = {}) {
    auto client = make_curl_client(std::move(options), kClock);
    EXPECT_TRUE(client.has_value());
    request.url = url;
    return (*client)->call(std::move(request));
}

std::string url_of(const HttpServer& server, const std::string& path = "/") {
    return "http://127.0.0.1:" + std::to_string(server.port()) + path;
}

TEST(HttpServer, PassesRequestsToItsHandler) {
    const auto server = serve(echo);
    HttpRequest request;
    request.method = "POST";
    request.body = "payload";
    const auto response = fetch(url_of(*server, "/a?b=c"), {}, request);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "POST /a?b=c payload");
    EXPECT_EQ(*find_header(response->headers, "Content-Type"), "text/plain");
    EXPECT_EQ(server->stats().requests, 1U);
}

TEST(HttpServer, AHandlerMayReplyLaterFromAnotherThread) {
    std::vector<std::jthread> threads;
    auto server =
        HttpServer::start({}, LaterHandler{[&](const ServerRequest& request, Reply reply) {
                              threads.emplace_back([target = request.target, reply] {
                                  std::this_thread::sleep_for(50ms);
                                  reply({200, "text/plain", target, {}});
                                  reply({500, "text/plain", "too late", {}});
                              });
                          }});
    ASSERT_TRUE(server.has_value()) << server.error().message;
    const auto slow = std::async(std::launch::async, [&] { return fetch(url_of(**server, "/a")); });
    EXPECT_EQ(fetch(url_of(**server, "/b"))->body, "/b");
    slow.wait();
    EXPECT_EQ((*server)->stats().requests, 2U);
    threads.clear();
}

TEST(HttpServer, AThrowingLaterHandlerGivesStatus500) {
    const auto throws = [](const ServerRequest&, const Reply&) { throw std::runtime_error("no"); };
    auto server = HttpServer::start({}, LaterHandler{throws});
    ASSERT_TRUE(server.has_value());
    EXPECT_EQ(fetch(url_of(**server))->status, 500);
}

TEST(HttpServer, UnansweredRequestDoesNotBlockShutdown) {
    ServerOptions options;
    options.answer_timeout = 200ms;
    options.drain_timeout = 200ms;
    auto server = HttpServer::start(
        std::move(options), LaterHandler{[](const ServerRequest&, const Reply&) {}});
    ASSERT_TRUE(server.has_value());
    EXPECT_FALSE(fetch(url_of(**server)).has_value());
    server->reset();
}

TEST(HttpServer, HandlerGetsPathHeadersAndPeer) {
    ServerRequest seen;
    const auto server = serve([&](const ServerRequest& request) {
        seen = request;
        return ServerResponse{204, "text/plain", "", {{"X-Extra", "1"}}};
    });
    HttpRequest request;
    request.headers = {{"X-Test", "v"}};
    const auto response = fetch(url_of(*server, "/p/q?x"), {}, request);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 204);
    EXPECT_EQ(*find_header(response->headers, "X-Extra"), "1");
    EXPECT_EQ(seen.path(), "/p/q");
    EXPECT_EQ(*find_header(seen.headers, "x-test"), "v");
    EXPECT_THAT(seen.peer, StartsWith("127.0.0.1:"));
}

TEST(HttpServer, AnswersHeadWithoutABody) {
    const auto server = serve(echo);
    HttpRawClient client{server->port()};
    client.send("HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const std::string answer = client.read_until_closed(kPatience);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n")) << "GET /x and a blank";
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(HttpServer, KeepsConnectionsOpenAndServesPipelinedRequests) {
    const auto server = serve(echo);
    HttpRawClient client{server->port()};
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(client.read_until("GET /2", kPatience));
    client.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(client.read_until("GET /3", kPatience));
    EXPECT_EQ(server->stats().accepted, 1U);
    EXPECT_EQ(server->stats().requests, 3U);
}

TEST(HttpServer, SendsContinueOnExpect) {
    const auto server = serve(echo);
    HttpRawClient client{server->port()};
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_TRUE(client.read_until("HTTP/1.1 100", kPatience));
    client.send("body");
    EXPECT_TRUE(client.read_until("POST / body", kPatience));
}

TEST(HttpServer, ThrowingHandlerCauses500) {
    const auto server = serve(
        [](const ServerRequest&) -> ServerResponse { throw std::runtime_error("secret detail"); });
    const auto response = fetch(url_of(*server));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 500);
    EXPECT_EQ(response->body, "internal error\n");
}

TEST(HttpServer, ServesLargeResponses) {
    const std::string large(3 * 1024 * 1024, 'x');
    const auto server = serve([&](const ServerRequest&) {
        return ServerResponse{200, "text/plain", large, {}};
    });
    const auto response = fetch(url_of(*server));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, large);
}

TEST(HttpServer, ListensOnIpv4AndIpv6) {
    ServerOptions options;
    options.address = "::";
    const auto server = serve(echo, options);
    EXPECT_TRUE(fetch("http://127.0.0.1:" + std::to_string(server->port()) + "/").has_value());
    EXPECT_TRUE(fetch("http://[::1]:" + std::to_string(server->port()) + "/").has_value());
}

TEST(HttpServer, RejectsInvalidListenAddress) {
    const auto server = serve(echo, {.address = "127.0.0.1"});
    const auto taken = HttpServer::start({.address = "127.0.0.1", .port = server->port()}, echo);
    ASSERT_FALSE(taken.has_value());
    EXPECT_EQ(taken.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(taken.error().message, HasSubstr("in use"));
    const auto nonsense = HttpServer::start({.address = "localhost:80"}, echo);
    ASSERT_FALSE(nonsense.has_value());
    EXPECT_EQ(nonsense.error().code, ErrorCode::kInvalidArgument);
}

TEST(HttpServer, DestructorFinishesTheRequestInProgress) {
    std::promise<void> in_handler;
    std::promise<void> go_on;
    auto server = serve([&](const ServerRequest&) {
        in_handler.set_value();
        go_on.get_future().wait();
        return ServerResponse{200, "text/plain", "finished", {}};
    });
    HttpRawClient idle{server->port()};
    HttpRawClient client{server->port()};
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    in_handler.get_future().wait();
    auto destroyed = std::async(std::launch::async, [&] { server.reset(); });
    go_on.set_value();
    EXPECT_THAT(client.read_until_closed(kPatience), HasSubstr("finished"));
    EXPECT_TRUE(idle.wait_until_closed(kPatience));
    destroyed.wait();
}

struct TlsFixture : testing::Test {
    std::string url() const { return "https://localhost:" + std::to_string(server->port()) + "/"; }

    test::Certificate first = test::make_certificate("first");
    test::Certificate second = test::make_certificate("second");
    std::unique_ptr<HttpServer> server =
        serve(echo, {.cert_pem = first.cert_pem, .key_pem = first.key_pem});
};

using HttpsServer = TlsFixture;

TEST_F(HttpsServer, ServesTrustingClients) {
    const auto response = fetch(url(), {.ca_pem = first.cert_pem});
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "GET / ");
}

TEST_F(HttpsServer, ClientsWithoutItsCaReject) {
    const auto response = fetch(url(), {.ca_pem = second.cert_pem});
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kForbidden) << response.error().message;
    EXPECT_TRUE(fetch(url(), {.verify = false}).has_value());
}

TEST_F(HttpsServer, ReplacesItsCertificateWithoutARestart) {
    ASSERT_TRUE(server->replace_certificate(second.cert_pem, second.key_pem).has_value());
    EXPECT_TRUE(fetch(url(), {.ca_pem = second.cert_pem}).has_value());
    EXPECT_FALSE(fetch(url(), {.ca_pem = first.cert_pem}).has_value());
}

TEST_F(HttpsServer, KeepsTheOldPairIfTheNewOneIsInvalid) {
    const std::vector<std::pair<std::string, std::string>> bad = {
        {second.cert_pem, first.key_pem}, {"not PEM", second.key_pem}, {second.cert_pem, ""}};
    for (const auto& [cert, key] : bad) {
        const Status status = server->replace_certificate(cert, key);
        ASSERT_FALSE(status.has_value());
        EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_TRUE(fetch(url(), {.ca_pem = first.cert_pem}).has_value());
}

TEST_F(HttpsServer, SurvivesPlainHttpAndGarbage) {
    for (const std::string text : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage"}) {
        HttpRawClient client{server->port()};
        client.send(text);
        EXPECT_TRUE(client.wait_until_closed(kPatience));
    }
    EXPECT_TRUE(fetch(url(), {.ca_pem = first.cert_pem}).has_value());
}

}  // namespace
}  // namespace stoker::http
