#include "common/http/blocking_client.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_script_server.h"
#include "tests/support/poll.h"
#include "tests/unit/common/http/make_client.h"
#include "tests/unit/common/http/test_clock.h"

namespace stoker::http {
namespace {

using namespace std::chrono_literals;
using test::answering;
using test::dies_on_second_request;
using test::HttpScriptServer;
using test::ScriptConnection;
using test::ScriptRequest;
using testing::HasSubstr;

constexpr auto kPatience = 20s;

const SystemClock kClock;

std::unique_ptr<BlockingClient> make_blocking(
    ClientOptions options = {}, const Clock& clock = kClock) {
    auto client = BlockingClient::make(std::move(options), clock);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
}

Status send(BlockingClient& client, HttpRequest request, std::stop_token stop = {}) {
    return client.call(std::move(request), HttpSink{}, stop);
}

Error error_of(BlockingClient& client, HttpRequest request, std::stop_token stop = {}) {
    const Status status = send(client, std::move(request), std::move(stop));
    EXPECT_FALSE(status.has_value());
    return status.has_value() ? Error{} : status.error();
}

HttpScriptServer::Script replying(std::string body) {
    return answering([body = std::move(body)](const ScriptRequest&, ScriptConnection& to) {
        to.reply(200, body);
    });
}

// Never responds; waits for the client to give up.
HttpScriptServer::Script silent() {
    return [](ScriptConnection& connection) {
        connection.read_request();
        connection.wait_for_hang_up(30s);
    };
}

TEST(BlockingClient, DeliversAStreamPieceByPieceOnTheCallersThread) {
    std::promise<void> first_seen;
    auto first_seen_future = first_seen.get_future();
    HttpScriptServer server{[&](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nADD\n\r\n");
        first_seen_future.wait();
        to.send("4\r\nDEL\n\r\n0\r\n\r\n");
    }};
    const auto caller = std::this_thread::get_id();
    std::vector<std::string> pieces;
    HttpSink sink;
    sink.on_response = [&](int status, const Headers&) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        pieces.push_back(std::to_string(status));
    };
    sink.on_data = [&](std::span<const std::byte> data) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        pieces.emplace_back(reinterpret_cast<const char*>(data.data()), data.size());
        if (pieces.size() == 2) {
            first_seen.set_value();
        }
        return true;
    };
    EXPECT_TRUE(make_blocking()->call(get(server.url()), std::move(sink), {}));
    EXPECT_EQ(pieces, (std::vector<std::string>{"200", "ADD\n", "DEL\n"}));
}

TEST(BlockingClient, ReusesItsConnection) {
    HttpScriptServer server{replying("ok")};
    const auto client = make_blocking();
    for (int i = 0; i < 20; ++i) {
        HttpRequest request = get(server.url());
        request.method = i % 2 == 0 ? "GET" : "POST";
        request.body = i % 2 == 0 ? "" : "{}";
        ASSERT_TRUE(send(*client, std::move(request)));
    }
    EXPECT_EQ(server.connection_count(), 1);
}

TEST(BlockingClient, ReportsErrorsLikeTheHttpClient) {
    HttpScriptServer silence{silent()};
    HttpScriptServer wordy{replying(std::string(1001, 'x'))};
    HttpScriptServer cut{[](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    }};
    for (const std::string& url :
         {silence.url(), wordy.url(), cut.url(), std::string{"http://[::1"}, std::string{}}) {
        SCOPED_TRACE(url);
        HttpRequest request = get(url);
        request.total_timeout = url == silence.url() ? Duration{50ms} : Duration{30s};
        request.response_bytes_max = Bytes{1000};
        const auto other = make_client()->call(request);
        ASSERT_FALSE(other.has_value());
        const Error error = error_of(*make_blocking(), std::move(request));
        EXPECT_EQ(error.code, other.error().code);
        EXPECT_EQ(error.message, other.error().message);
    }
}

TEST(BlockingClient, IdleTimeoutEndsASilentStream) {
    HttpScriptServer server{[](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\n\r\nx");
        to.wait_for_hang_up(30s);
    }};
    HttpRequest request = get(server.url());
    request.total_timeout = Duration::zero();
    request.idle_timeout = 50ms;
    const Error error = error_of(*make_blocking(), std::move(request));
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(error.message, "nothing received for 0.05 s, 1 bytes of the answer received");
}

TEST(BlockingClient, StopEndsASilentCallAndTheServerSeesIt) {
    std::stop_source stop;
    std::promise<bool> hung_up;
    HttpScriptServer server{[&](ScriptConnection& connection) {
        connection.read_request();
        stop.request_stop();
        hung_up.set_value(connection.wait_for_hang_up(kPatience));
    }};
    HttpRequest request = get(server.url());
    request.total_timeout = Duration::zero();
    const auto client = make_blocking();
    EXPECT_EQ(error_of(*client, std::move(request), stop.get_token()).code, ErrorCode::kCancelled);
    EXPECT_TRUE(hung_up.get_future().get());
}

TEST(BlockingClient, SendsNothingOnceStopped) {
    HttpScriptServer server{replying("ok")};
    std::stop_source stop;
    stop.request_stop();
    HttpRequest request = get(server.url());
    request.method = "POST";
    request.body = "{}";
    const auto client = make_blocking();
    EXPECT_EQ(error_of(*client, std::move(request), stop.get_token()).code, ErrorCode::kCancelled);
    EXPECT_EQ(server.connection_count(), 0);
}

TEST(BlockingClient, SinkMayStopTheTransferAndTheNextCallWorks) {
    HttpScriptServer server{replying("more than anybody wants")};
    const auto client = make_blocking();
    HttpSink sink;
    sink.on_data = [](std::span<const std::byte>) { return false; };
    const Status status = client->call(get(server.url()), std::move(sink), {});
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(send(*client, get(server.url())));
}

Status receive(BlockingClient& client, const std::string& url, HttpSink sink) {
    return client.call(get(url), std::move(sink), {});
}

TEST(BlockingClient, AnExceptionOfTheSinkEndsOnlyItsCall) {
    HttpScriptServer server{replying("ok")};
    ClientOptions options;
    options.connections_max = 8;
    const auto client = make_blocking(options);
    for (int i = 0; i < 4; ++i) {
        HttpSink on_response;
        on_response.on_response = [](int, const Headers&) { throw std::bad_alloc{}; };
        const Status no_memory = receive(*client, server.url(), std::move(on_response));
        ASSERT_FALSE(no_memory.has_value());
        EXPECT_EQ(no_memory.error().code, ErrorCode::kResourceExhausted);
        HttpSink on_data;
        on_data.on_data = [](std::span<const std::byte>) -> bool {
            throw std::runtime_error{"why"};
        };
        const Status broken = receive(*client, server.url(), std::move(on_data));
        ASSERT_FALSE(broken.has_value());
        EXPECT_EQ(broken.error().code, ErrorCode::kInternal);
        EXPECT_EQ(broken.error().message, "why");
    }
    EXPECT_TRUE(send(*client, get(server.url())));
}

TEST(BlockingClient, AnExceptionInACallFreesItsConnection) {
    HttpScriptServer server{replying("ok")};
    TestClock clock;
    ClientOptions options;
    options.connections_max = 1;
    const auto client = make_blocking(options, clock);
    int thrown = 0;
    for (int readings = 1; readings <= 20; ++readings) {
        clock.fail_after(readings);
        try {
            static_cast<void>(send(*client, get(server.url())));
        } catch (const std::bad_alloc&) {
            ++thrown;
        }
        clock.fail_after(0);
        HttpRequest request = get(server.url());
        request.total_timeout = 10s;
        ASSERT_TRUE(send(*client, std::move(request))) << "after reading " << readings;
    }
    EXPECT_GE(thrown, 1) << "readings in callbacks of libcurl end a call with an error instead";
}

TEST(BlockingClient, RepeatsAGetOnADeadConnection) {
    std::atomic<int> requests = 0;
    HttpScriptServer server{dies_on_second_request(requests)};
    const auto client = make_blocking();
    ASSERT_TRUE(send(*client, get(server.url())));
    EXPECT_TRUE(send(*client, get(server.url())));
    EXPECT_EQ(requests, 3);
}

TEST(BlockingClient, NeverSendsAPostTwice) {
    for (const std::string body : {"{}", ""}) {
        SCOPED_TRACE("body: " + body);
        std::atomic<int> requests = 0;
        HttpScriptServer server{dies_on_second_request(requests)};
        const auto client = make_blocking();
        ASSERT_TRUE(send(*client, get(server.url())));
        HttpRequest post = get(server.url());
        post.method = "POST";
        post.body = body;
        EXPECT_EQ(error_of(*client, std::move(post)).code, ErrorCode::kUnavailable);
        EXPECT_EQ(requests, 2);
    }
}

TEST(BlockingClient, LimitsItsConnections) {
    std::atomic<int> open = 0;
    std::atomic<int> most = 0;
    HttpScriptServer server{answering([&](const ScriptRequest&, ScriptConnection& to) {
        const int now = ++open;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        EXPECT_TRUE(test::eventually([&] { return most >= 3; })) << "three at once";
        std::this_thread::sleep_for(5ms);  // time for a fourth call to start
        --open;
        to.reply(200, "ok");
    })};
    ClientOptions options;
    options.connections_max = 3;
    const auto client = make_blocking(options);
    {
        std::vector<std::jthread> callers;
        for (int i = 0; i < 12; ++i) {
            callers.emplace_back([&] {
                for (int k = 0; k < 10; ++k) {
                    EXPECT_TRUE(send(*client, get(server.url())));
                }
            });
        }
    }
    EXPECT_EQ(most, 3);
    EXPECT_LE(server.connection_count(), 3);
}

// A client with one connection, and a call that occupies it until release().
class OccupiedClient {
public:
    OccupiedClient()
        : server_{[this](ScriptConnection& to) {
              while (const auto request = to.read_request()) {
                  if (request->target == "/holds") {
                      held_.set_value();
                      released_future_.wait();
                  } else {
                      const std::lock_guard lock{mutex_};
                      targets_.push_back(request->target);
                  }
                  to.reply(200, "ok");
              }
          }} {
        ClientOptions options;
        options.connections_max = 1;
        client_ = make_blocking(options, clock_);
        holder_ = std::jthread{[this] {
            HttpRequest request = get(server_.url("/holds"));
            request.total_timeout = Duration::zero();
            EXPECT_TRUE(send(*client_, std::move(request)));
        }};
        held_.get_future().wait();
    }

    ~OccupiedClient() { release(); }

    void release() {
        if (!std::exchange(is_released_, true)) {
            released_.set_value();
            holder_.join();
        }
    }

    BlockingClient& client() { return *client_; }

    TestClock& clock() { return clock_; }

    [[nodiscard]] int connection_count() const { return server_.connection_count(); }

    // Sends `request` on a thread of its own and returns when it is in the queue: a call reads the
    // clock when it starts, and again when it has to wait.
    std::future<Status> queue(HttpRequest request, std::stop_token stop = {}) {
        std::promise<std::thread::id> started;
        auto thread = started.get_future();
        auto status = std::async(
            std::launch::async,
            [this, &started, request = std::move(request), stop = std::move(stop)]() mutable {
                started.set_value(std::this_thread::get_id());
                return send(*client_, std::move(request), std::move(stop));
            });
        const auto id = thread.get();
        EXPECT_TRUE(test::eventually([&] { return clock_.readings_of(id) >= 2; }));
        return status;
    }

    HttpRequest request(const std::string& target) { return get(server_.url(target)); }

    std::vector<std::string> targets() {
        const std::lock_guard lock{mutex_};
        return targets_;
    }

private:
    std::promise<void> held_;
    std::promise<void> released_;
    std::shared_future<void> released_future_ = released_.get_future().share();
    std::mutex mutex_;
    std::vector<std::string> targets_;  // in the order of arrival
    bool is_released_ = false;
    TestClock clock_;
    HttpScriptServer server_;
    std::unique_ptr<BlockingClient> client_;
    std::jthread holder_;
};

TEST(BlockingClient, TotalTimeoutIncludesTheTimeInTheQueue) {
    OccupiedClient occupied;
    HttpRequest request = occupied.request("/late");
    request.total_timeout = 50ms;
    const Error error = error_of(occupied.client(), std::move(request));
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(error.message, "timed out after 0.05 s, no answer yet");
    occupied.release();
    EXPECT_TRUE(occupied.targets().empty());
}

TEST(BlockingClient, StopEndsACallInTheQueue) {
    OccupiedClient occupied;
    std::stop_source stop;
    auto queued = occupied.queue(occupied.request("/stopped"), stop.get_token());
    stop.request_stop();
    const Status stopped = queued.get();
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    occupied.release();
    EXPECT_TRUE(send(occupied.client(), occupied.request("/next")));
    EXPECT_EQ(occupied.targets(), std::vector<std::string>{"/next"});
}

TEST(BlockingClient, CallsInTheQueueRunInTheirOrder) {
    OccupiedClient occupied;
    const std::vector<std::string> targets{"/1", "/2", "/3", "/4", "/5"};
    std::vector<std::future<Status>> queued;
    for (const std::string& target : targets) {
        queued.push_back(occupied.queue(occupied.request(target)));
    }
    occupied.release();
    for (auto& status : queued) {
        EXPECT_TRUE(status.get());
    }
    EXPECT_EQ(occupied.targets(), targets);
}

TEST(BlockingClient, SendsNothingWhenItsTurnComesAfterItsDeadline) {
    OccupiedClient occupied;
    HttpRequest request = occupied.request("/late");
    request.total_timeout = 1h;
    auto queued = occupied.queue(std::move(request));
    occupied.clock().advance(2h);
    occupied.release();
    const Status late = queued.get();
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_TRUE(send(occupied.client(), occupied.request("/next")));
    EXPECT_EQ(occupied.targets(), std::vector<std::string>{"/next"});
    EXPECT_EQ(occupied.connection_count(), 1) << "no request was cut off";
}

TEST(BlockingClient, RejectsMissingCaFile) {
    ClientOptions options;
    options.ca_file = "/no/such/file";
    const auto client = BlockingClient::make(std::move(options), kClock);
    ASSERT_FALSE(client.has_value());
    EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(client.error().message, HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace stoker::http
