#include <cstdlib>
#include <list>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/accept_backoff.h"
#include "common/base/prng.h"
#include "common/base/unique_fd.h"
#include "common/http/http_server.h"
#include "tests/support/http_certificate.h"
#include "tests/support/http_raw_client.h"
#include "tests/support/test_seed.h"

namespace stoker::http {
namespace {

using namespace std::chrono_literals;
using test::HttpRawClient;
using testing::StartsWith;

constexpr Duration kPatience = 20s;
constexpr std::string_view kGoodRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

std::unique_ptr<HttpServer> serve(ServerOptions options) {
    const auto handler = [](const ServerRequest&) { return ServerResponse{}; };
    auto server = HttpServer::start(std::move(options), handler);
    EXPECT_TRUE(server.has_value()) << server.error().message;
    return *std::move(server);
}

void expect_alive(const HttpServer& server) {
    HttpRawClient client{server.port()};
    client.send(kGoodRequest);
    EXPECT_THAT(client.read_until_closed(kPatience), StartsWith("HTTP/1.1 200"));
}

bool wait_for_open(const HttpServer& server, std::uint64_t count) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (server.stats().open != count) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

TEST(HttpServerAbuse, SlowHeaderIsCutEvenWithSteadyBytes) {
    const auto server = serve({.header_timeout = 300ms});
    HttpRawClient client{server->port()};
    client.send("GET / HTTP/1.1\r\n");
    bool closed = false;
    for (int i = 0; i < 200 && !closed; ++i) {
        client.send("X-Drip: 1\r\n");
        closed = client.wait_until_closed(50ms);
    }
    EXPECT_TRUE(closed) << "each drip must not buy more time";
    expect_alive(*server);
}

TEST(HttpServerAbuse, SlowBodyIsCut) {
    const auto server = serve({.body_timeout = 200ms});
    HttpRawClient client{server->port()};
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this");
    EXPECT_TRUE(client.wait_until_closed(kPatience));
    EXPECT_EQ(server->stats().requests, 0U);
    expect_alive(*server);
}

TEST(HttpServerAbuse, IdleConnectionsAreClosed) {
    const auto server = serve({.idle_timeout = 200ms});
    HttpRawClient never_spoke{server->port()};
    HttpRawClient spoke_once{server->port()};
    spoke_once.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(spoke_once.read_until("200 OK", kPatience));
    EXPECT_TRUE(never_spoke.wait_until_closed(kPatience));
    EXPECT_TRUE(spoke_once.wait_until_closed(kPatience));
    EXPECT_TRUE(wait_for_open(*server, 0));
}

TEST(HttpServerAbuse, IdleHandshakeIsCut) {
    const auto certificate = test::make_certificate("localhost");
    const auto server = serve(
        {.cert_pem = certificate.cert_pem,
         .key_pem = certificate.key_pem,
         .handshake_timeout = 200ms});
    std::list<HttpRawClient> clients;
    for (int i = 0; i < 50; ++i) {
        clients.emplace_back(server->port());
    }
    for (HttpRawClient& client : clients) {
        EXPECT_TRUE(client.wait_until_closed(kPatience));
    }
    EXPECT_TRUE(wait_for_open(*server, 0)) << "no connection is leaked";
}

TEST(HttpServerAbuse, OversizedRequestsGetTheirStatus) {
    const auto server = serve({.header_bytes_max = kib(16), .body_bytes_max = kib(64)});
    const std::string long_header = "X-Long: " + std::string(20'000, 'x') + "\r\n";
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"HTTP/1.1 431", "GET / HTTP/1.1\r\n" + long_header + "\r\n"},
        {"HTTP/1.1 431", "GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n"},
        {"HTTP/1.1 413", "POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n"},
        {"HTTP/1.1 413",
         "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" +
             std::string(0x20000, 'x')},
        {"HTTP/1.1 400", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"},
    };
    for (const auto& [want, request] : cases) {
        SCOPED_TRACE(request.substr(0, 60));
        HttpRawClient client{server->port()};
        client.send(request);
        EXPECT_THAT(client.read_until_closed(kPatience), StartsWith(want));
    }
    expect_alive(*server);
}

// Chunk-size lines and trailer lines do not count towards the limits of header and body.
TEST(HttpServerAbuse, LimitsLinesOfAChunkedBody) {
    const auto server = serve({.header_bytes_max = kib(16), .body_bytes_max = kib(64)});
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string start : {"1;", "1\r\nx\r\n1;", "0\r\nX-Long: ", "0;"}) {
        SCOPED_TRACE(start);
        HttpRawClient client{server->port()};
        client.send(head + start + std::string(200'000, 'x'));
        EXPECT_THAT(client.read_until_closed(kPatience), StartsWith("HTTP/1.1 431"));
    }
    HttpRawClient honest{server->port()};
    honest.send(head + "1;name=value\r\nx\r\n0\r\nX-Trailer: y\r\n\r\n");
    EXPECT_TRUE(honest.read_until("HTTP/1.1 200", kPatience));
    expect_alive(*server);
}

TEST(HttpServerAbuse, AnswersGarbageWith400) {
    const auto server = serve({});
    for (const std::string text :
         {"\r\n\r\n\r\n",
          "GET\r\n\r\n",
          "GET / FTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nno colon\r\n\r\n"}) {
        SCOPED_TRACE(text);
        HttpRawClient client{server->port()};
        client.send(text);
        EXPECT_THAT(client.read_until_closed(kPatience), StartsWith("HTTP/1.1 400"));
    }
    expect_alive(*server);
}

TEST(HttpServerAbuse, SurvivesRandomBytes) {
    Prng random{test::seed()};
    const auto server = serve({.header_timeout = 500ms});
    for (int round = 0; round < 200; ++round) {
        HttpRawClient client{server->port()};
        std::string bytes(1 + random.below(2000), '\0');
        for (char& c : bytes) {
            c = static_cast<char>(random());
        }
        client.send(round % 2 == 0 ? bytes : "GET / HTTP/1.1\r\n" + bytes + "\r\n\r\n");
    }
    expect_alive(*server);
    EXPECT_TRUE(wait_for_open(*server, 0));
}

TEST(HttpServerAbuse, NewConnectionReplacesTheLongestWaiting) {
    const auto server = serve({.connections_max = 3, .header_timeout = 60s});
    std::list<HttpRawClient> holders;
    for (int i = 0; i < 3; ++i) {
        holders.emplace_back(server->port());
        ASSERT_TRUE(wait_for_open(*server, holders.size()));
    }
    expect_alive(*server);
    EXPECT_TRUE(holders.front().wait_until_closed(kPatience));
    EXPECT_EQ(server->stats().refused, 1U);
    holders.back().send(kGoodRequest);
    EXPECT_TRUE(holders.back().read_until_closed(kPatience).starts_with("HTTP/1.1 200"));
}

TEST(HttpServerAbuse, SilentFloodDoesNotBlockOthers) {
    const auto server = serve({.connections_max = 16, .header_timeout = 60s});
    std::list<HttpRawClient> flood;
    for (int i = 0; i < 300; ++i) {
        flood.emplace_back(server->port());
        if (i % 20 == 19) {
            expect_alive(*server);
        }
    }
}

TEST(HttpServerAbuse, CutsASilentPeerAtTheHeaderTimeout) {
    const auto server = serve({.idle_timeout = 60s, .header_timeout = 200ms});
    HttpRawClient silent{server->port()};
    EXPECT_TRUE(silent.wait_until_closed(kPatience));
}

TEST(HttpServerAbuse, RequestInProgressIsNotCutForANewConnection) {
    std::vector<Reply> replies;
    std::mutex mutex;
    const auto server = HttpServer::start(
        {.connections_max = 1}, LaterHandler{[&](const ServerRequest&, Reply reply) {
            const std::lock_guard lock(mutex);
            replies.push_back(std::move(reply));
        }});
    ASSERT_TRUE(server.has_value());
    HttpRawClient asking{(*server)->port()};
    asking.send(kGoodRequest);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while ((*server)->stats().requests == 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    HttpRawClient newcomer{(*server)->port()};
    EXPECT_TRUE(newcomer.wait_until_closed(kPatience));
    {
        const std::lock_guard lock(mutex);
        ASSERT_EQ(replies.size(), 1U);
        replies.front()({});
    }
    EXPECT_TRUE(asking.read_until_closed(kPatience).starts_with("HTTP/1.1 200"));
}

TEST(HttpServerAbuse, NonReadingPeerIsCut) {
    const std::string large(64 * 1024 * 1024, 'x');
    const auto handler = [&](const ServerRequest&) {
        return ServerResponse{200, "text/plain", large, {}};
    };
    auto server = HttpServer::start({.write_timeout = 200ms}, handler);
    ASSERT_TRUE(server.has_value());
    HttpRawClient client{(*server)->port()};
    client.send(kGoodRequest);
    EXPECT_TRUE(wait_for_open(**server, 1));
    EXPECT_TRUE(wait_for_open(**server, 0)) << "without the client reading a byte";
}

// Runs in its own process, which has no descriptors left. Returns 0 on success.
int accept_without_descriptors() {
    const auto server = serve({.address = "127.0.0.1"});
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur =
        static_cast<rlim_t>(UniqueFd{::dup(0)}.get()) + 1;  // room for one: the client's
    ::setrlimit(RLIMIT_NOFILE, &limit);
    HttpRawClient client{server->port()};
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (AcceptBackoff::failures() < 3 && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    const bool backed_off = AcceptBackoff::failures() >= 3 && server->stats().accepted == 0;
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    client.send(kGoodRequest);
    const std::string answer = client.read_until_closed(kPatience);
    return backed_off && answer.starts_with("HTTP/1.1 200") ? 0 : 1;
}

TEST(HttpServerAbuseDeathTest, WaitsForDescriptors) {
    EXPECT_EXIT(
        std::exit(accept_without_descriptors()),
        testing::ExitedWithCode(0),
        "cannot accept connections for now.*Too many open files");
}

}  // namespace
}  // namespace stoker::http
