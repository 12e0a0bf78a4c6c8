#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/http_client.h"
#include "tests/support/http_script_server.h"
#include "tests/unit/common/http/make_client.h"

namespace stoker::http {
namespace {

using namespace std::chrono_literals;
using test::answering;
using test::dies_on_second_request;
using test::HttpScriptServer;
using test::ScriptConnection;
using test::ScriptRequest;
using testing::HasSubstr;

const SystemClock kClock;

Error error_of(HttpClient& client, HttpRequest request) {
    const auto response = client.call(std::move(request));
    EXPECT_FALSE(response.has_value());
    return response.has_value() ? Error{} : response.error();
}

// A server that never responds; it waits for the client to give up.
HttpScriptServer::Script silent() {
    return [](ScriptConnection& connection) {
        connection.read_request();
        connection.wait_for_hang_up(30s);
    };
}

TEST(HttpClientFaults, RefusedConnectionIsUnavailable) {
    std::string url;
    {
        HttpScriptServer gone{silent()};
        url = gone.url();
    }
    const Error error = error_of(*make_client(), get(url));
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("Connection refused"));
}

TEST(HttpClientFaults, UnknownHostIsUnavailable) {
    const Error error = error_of(*make_client(), get("http://no-such-host.invalid/"));
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("no-such-host.invalid"));
}

TEST(HttpClientFaults, RejectsBadUrls) {
    const auto client = make_client();
    EXPECT_EQ(error_of(*client, get("http://[::1")).code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error_of(*client, get("file:///etc/hostname")).code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error_of(*client, get("")).code, ErrorCode::kInvalidArgument);
}

TEST(HttpClientFaults, TotalTimeoutEndsASlowResponse) {
    HttpScriptServer server{silent()};
    HttpRequest request = get(server.url());
    request.total_timeout = 50ms;
    const Error error = error_of(*make_client(), std::move(request));
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(error.message, "timed out after 0.05 s, no answer yet");
}

TEST(HttpClientFaults, IdleTimeoutEndsOnlySilentStreams) {
    HttpScriptServer server{[](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\n\r\n");
        for (int i = 0; i < 8; ++i) {
            to.send("x");
            to.wait_for_hang_up(100ms);  // 0.8 s of data with an idle limit of 0.5 s
        }
        to.wait_for_hang_up(30s);
    }};
    HttpRequest request = get(server.url());
    request.total_timeout = Duration::zero();
    request.idle_timeout = 500ms;
    const Error error = error_of(*make_client(), std::move(request));
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(error.message, "nothing received for 0.5 s, 8 bytes of the answer received");
}

TEST(HttpClientFaults, OverlongResponseFails) {
    HttpScriptServer server{answering([](const ScriptRequest& request, ScriptConnection& to) {
        to.reply(200, std::string(request.target == "/fits" ? 1000 : 1001, 'x'));
    })};
    const auto client = make_client();
    HttpRequest request = get(server.url("/fits"));
    request.response_bytes_max = Bytes{1000};
    EXPECT_TRUE(client->call(request).has_value());
    request.url = server.url("/does-not");
    EXPECT_EQ(error_of(*client, request).code, ErrorCode::kResourceExhausted);
}

TEST(HttpClientFaults, HugeHeadersFail) {
    HttpScriptServer server{[](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 100; ++i) {
            to.send("X-" + std::to_string(i) + ": " + std::string(1000, 'y') + "\r\n");
        }
        to.send("\r\n");
    }};
    EXPECT_EQ(error_of(*make_client(), get(server.url())).code, ErrorCode::kResourceExhausted);
}

TEST(HttpClientFaults, BrokenConnectionIsUnavailable) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"cut inside the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
        {"cut inside the headers", "HTTP/1.1 200 OK\r\nContent-Le"},
        {"nothing at all", ""},
        {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n"},
        {"a broken chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"},
    };
    for (const auto& [name, answer] : cases) {
        SCOPED_TRACE(name);
        HttpScriptServer server{[&answer = answer](ScriptConnection& to) {
            to.read_request();
            to.send(answer);
        }};
        const Error error = error_of(*make_client(), get(server.url()));
        EXPECT_EQ(error.code, ErrorCode::kUnavailable) << error.message;
        EXPECT_NE(error.message, "");
    }
}

TEST(HttpClientFaults, ResetIsUnavailable) {
    HttpScriptServer server{[](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        to.reset();
    }};
    EXPECT_EQ(error_of(*make_client(), get(server.url())).code, ErrorCode::kUnavailable);
}

TEST(HttpClientFaults, GetOnDeadPooledConnectionIsRetried) {
    std::atomic<int> requests = 0;
    HttpScriptServer server{dies_on_second_request(requests)};
    const auto client = make_client();
    ASSERT_TRUE(client->call(get(server.url())).has_value());
    const auto second = client->call(get(server.url()));
    ASSERT_TRUE(second.has_value()) << second.error().message;
    EXPECT_EQ(second->body, "ok");
    EXPECT_EQ(requests, 3);
}

TEST(HttpClientFaults, PostIsNeverSentTwice) {
    for (const std::string body : {"{}", ""}) {
        SCOPED_TRACE("body: " + body);
        std::atomic<int> requests = 0;
        HttpScriptServer server{dies_on_second_request(requests)};
        const auto client = make_client();
        ASSERT_TRUE(client->call(get(server.url())).has_value());
        HttpRequest post = get(server.url());
        post.method = "POST";
        post.body = body;
        EXPECT_EQ(error_of(*client, std::move(post)).code, ErrorCode::kUnavailable);
        EXPECT_EQ(requests, 2) << "it may have been done: only the caller can know";
    }
}

TEST(HttpClientFaults, SinkMayStopTheTransfer) {
    HttpScriptServer server{answering([](const ScriptRequest&, ScriptConnection& to) {
        to.reply(200, "more than anybody wants");
    })};
    std::promise<Status> done;
    HttpSink sink;
    sink.on_data = [](std::span<const std::byte>) { return false; };
    sink.on_done = [&](Status status) { done.set_value(std::move(status)); };
    const auto client = make_client();
    client->start(get(server.url()), std::move(sink));
    const Status status = done.get_future().get();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
}

TEST(HttpClientFaults, CancelEndsASilentCall) {
    std::promise<void> asked;
    std::promise<bool> hung_up;
    HttpScriptServer server{[&](ScriptConnection& connection) {
        connection.read_request();
        asked.set_value();
        hung_up.set_value(connection.wait_for_hang_up(20s));
    }};
    const auto client = make_client();
    std::promise<Status> done;
    HttpSink sink;
    sink.on_done = [&](Status status) { done.set_value(std::move(status)); };
    HttpRequest request = get(server.url());
    request.total_timeout = Duration::zero();
    const CallId id = client->start(std::move(request), std::move(sink));
    asked.get_future().wait();
    client->cancel(id);
    const Status status = done.get_future().get();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(hung_up.get_future().get()) << "the server sees it too";
    client->cancel(id);  // already ended: ignored
}

TEST(HttpClientFaults, StopTokenEndsABlockingCall) {
    std::stop_source stop;
    HttpScriptServer server{[&](ScriptConnection& connection) {
        connection.read_request();
        stop.request_stop();
        connection.wait_for_hang_up(20s);
    }};
    const auto response = make_client()->call(get(server.url()), stop.get_token());
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
}

TEST(HttpClientFaults, DestructionFinishesEveryCallOnce) {
    HttpScriptServer server{silent()};
    std::atomic<int> cancelled = 0;
    std::atomic<int> late = 0;
    auto client = make_client();
    HttpClient* raw = client.get();
    constexpr int kCalls = 20;
    for (int i = 0; i < kCalls; ++i) {
        HttpSink sink;
        sink.on_done = [&](Status status) {
            if (!status && status.error().code == ErrorCode::kCancelled) {
                ++cancelled;
            }
            HttpSink too_late;
            too_late.on_done = [&](Status second) { late += second.has_value() ? 0 : 1; };
            raw->start(get(server.url()), std::move(too_late));
        };
        client->start(get(server.url()), std::move(sink));
    }
    client.reset();
    EXPECT_EQ(cancelled, kCalls);
    EXPECT_EQ(late, kCalls) << "what starts during destruction is cancelled as well";
}

TEST(HttpClientFaults, ThreadsMayStartAndCancelConcurrently) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    ClientOptions options;
    options.connections_max = 8;
    auto client = make_client(options);
    std::atomic<int> done = 0;
    std::vector<std::thread> threads;
    constexpr int kThreads = 4;
    constexpr int kCallsEach = 200;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < kCallsEach; ++i) {
                HttpSink sink;
                sink.on_done = [&](Status) { ++done; };
                const CallId id = client->start(get(server.url()), std::move(sink));
                if (i % 3 == 0) {
                    client->cancel(id);
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    client.reset();
    EXPECT_EQ(done, kThreads * kCallsEach);
}

TEST(HttpClientFaults, RejectsMissingCaFile) {
    ClientOptions no_such_file;
    no_such_file.ca_file = "/nonexistent/ca.crt";
    const auto client = make_curl_client(no_such_file, kClock);
    ASSERT_FALSE(client.has_value());
    EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::http
