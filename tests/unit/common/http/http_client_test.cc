#include "common/http/http_client.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_script_server.h"
#include "tests/unit/common/http/make_client.h"

namespace stoker::http {
namespace {

using test::answering;
using test::HttpScriptServer;
using test::ScriptConnection;
using test::ScriptRequest;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Duration kPatience = std::chrono::seconds{20};
const SystemClock kClock;

TEST(HttpClient, ReturnsStatusHeadersAndBody) {
    HttpScriptServer server{answering([](const ScriptRequest&, ScriptConnection& to) {
        to.reply(404, "no such thing", "X-Why: gone\r\n");
    })};
    const auto response = make_client()->call(get(server.url("/a")));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 404) << "any status is an answer";
    EXPECT_EQ(response->body, "no such thing");
    ASSERT_NE(find_header(response->headers, "x-why"), nullptr);
    EXPECT_EQ(*find_header(response->headers, "x-why"), "gone");
}

TEST(HttpClient, SendsMethodTargetHeadersAndBodyAsGiven) {
    std::promise<ScriptRequest> seen;
    HttpScriptServer server{answering([&](const ScriptRequest& request, ScriptConnection& to) {
        seen.set_value(request);
        to.reply(200, "");
    })};
    HttpRequest request = get(server.url("/a/../b//c?x=1&y=%2F"));
    request.method = "PATCH";
    request.headers = {{"Content-Type", "application/apply-patch+yaml"}, {"X-Empty", ""}};
    request.body = R"({"a":1})";
    ASSERT_TRUE(make_client()->call(std::move(request)).has_value());
    const ScriptRequest got = seen.get_future().get();
    EXPECT_EQ(got.method, "PATCH");
    EXPECT_EQ(got.target, "/a/../b//c?x=1&y=%2F") << "never normalised";
    EXPECT_EQ(got.headers.at("content-type"), "application/apply-patch+yaml");
    EXPECT_EQ(got.headers.at("x-empty"), "");
    EXPECT_EQ(got.headers.count("expect"), 0U);
    EXPECT_THAT(got.headers.at("user-agent"), HasSubstr("stoker/"));
    EXPECT_EQ(got.body, R"({"a":1})");
}

TEST(HttpClient, SupportsEveryMethod) {
    HttpScriptServer server{answering([](const ScriptRequest& request, ScriptConnection& to) {
        const bool typed = request.headers.contains("content-type");
        if (request.method == "HEAD") {
            to.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
            return;
        }
        to.reply(200, request.method + " " + request.body + (typed ? " typed" : ""));
    })};
    const auto client = make_client();
    for (const std::string method : {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"}) {
        for (const std::string body : {"", "text"}) {
            SCOPED_TRACE(method + " " + body);
            if (method == "HEAD" && !body.empty()) {
                continue;
            }
            HttpRequest request = get(server.url());
            request.method = method;
            request.body = body;
            const auto response = client->call(std::move(request));
            ASSERT_TRUE(response.has_value()) << response.error().message;
            EXPECT_EQ(response->body, method == "HEAD" ? "" : method + " " + body);
        }
    }
}

TEST(HttpClient, ReusesItsConnection) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    const auto client = make_client();
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(client->call(get(server.url())).has_value());
    }
    EXPECT_EQ(server.connection_count(), 1);
}

// Collects a stream's data, for tests that wait for it piece by piece. Must outlive the client.
class Collector {
public:
    HttpSink sink() {
        HttpSink sink;
        sink.on_response = [this](int status, const Headers&) {
            update([&] { status_ = status; });
        };
        sink.on_data = [this](std::span<const std::byte> data) {
            update([&] { text_.append(reinterpret_cast<const char*>(data.data()), data.size()); });
            return true;
        };
        sink.on_done = [this](Status status) { update([&] { done_.push_back(status); }); };
        return sink;
    }

    bool wait_for_text(const std::string& text) {
        return wait([&] { return text_ == text; });
    }

    bool wait_until_done() {
        return wait([&] { return !done_.empty(); });
    }

    std::vector<Status> done() {
        const std::lock_guard lock{mutex_};
        return done_;
    }

private:
    template <class Change>
    void update(Change change) {
        const std::lock_guard lock{mutex_};
        change();
        changed_.notify_all();
    }

    template <class Predicate>
    bool wait(Predicate predicate) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, kPatience, predicate);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int status_ = 0;
    std::string text_;
    std::vector<Status> done_;
};

TEST(HttpClient, DeliversEachPieceOfAStreamAtOnce) {
    std::promise<void> first_seen;
    std::promise<void> end;
    auto first_seen_future = first_seen.get_future();
    auto end_future = end.get_future();
    HttpScriptServer server{[&](ScriptConnection& to) {
        to.read_request();
        to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nADD\n\r\n");
        first_seen_future.wait();
        to.send("4\r\nDEL\n\r\n");
        end_future.wait();
        to.send("0\r\n\r\n");
    }};
    Collector collector;
    const auto client = make_client();
    HttpRequest watch = get(server.url("/watch"));
    watch.total_timeout = Duration::zero();
    client->start(std::move(watch), collector.sink());
    EXPECT_TRUE(collector.wait_for_text("ADD\n"));
    first_seen.set_value();
    EXPECT_TRUE(collector.wait_for_text("ADD\nDEL\n"));
    EXPECT_TRUE(collector.done().empty()) << "the stream is still open";
    end.set_value();
    ASSERT_TRUE(collector.wait_until_done());
    EXPECT_TRUE(collector.done().front().has_value());
}

TEST(HttpClient, RunsManyCallsConcurrently) {
    constexpr int kCalls = 50;
    std::mutex mutex;
    std::condition_variable all_here;
    int waiting = 0;
    HttpScriptServer server{[&](ScriptConnection& to) {
        to.read_request();
        std::unique_lock lock{mutex};
        ++waiting;
        all_here.notify_all();
        // The server responds only after all requests have arrived.
        all_here.wait_for(lock, kPatience, [&] { return waiting == kCalls; });
        to.reply(200, "together");
    }};
    std::vector<Collector> collectors(kCalls);
    const auto client = make_client();
    for (Collector& collector : collectors) {
        client->start(get(server.url()), collector.sink());
    }
    for (Collector& collector : collectors) {
        EXPECT_TRUE(collector.wait_for_text("together"));
    }
}

TEST(HttpClient, LimitsItsConnections) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    ClientOptions options;
    options.connections_max = 3;
    std::vector<Collector> collectors(60);
    const auto client = make_client(options);
    for (Collector& collector : collectors) {
        client->start(get(server.url()), collector.sink());
    }
    for (Collector& collector : collectors) {
        EXPECT_TRUE(collector.wait_until_done());
    }
    EXPECT_LE(server.connection_count(), 3);
}

TEST(HttpClient, CallbacksMayStartAndCancel) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    Collector second;
    const auto client = make_client();
    HttpSink sink;
    sink.on_done = [&](Status) {
        const CallId id = client->start(get(server.url()), second.sink());
        client->cancel(CallId{id.value() + 1000});  // unknown: ignored
    };
    client->start(get(server.url()), std::move(sink));
    ASSERT_TRUE(second.wait_until_done());
    EXPECT_TRUE(second.done().front().has_value());
}

TEST(HttpClient, RunsTasksOnItsThreadInTheOrderOfTheirTimes) {
    const auto client = make_client();
    std::vector<int> order;  // without a lock: one thread runs all tasks
    std::promise<std::thread::id> last;
    const TimePoint now = kClock.now();
    client->run_at(now + 40ms, [&] {
        EXPECT_GE(kClock.now(), now + 40ms);
        order.push_back(3);
        last.set_value(std::this_thread::get_id());
    });
    client->run_at(now + 20ms, [&] { order.push_back(2); });
    client->run_at({}, [&] {
        order.push_back(0);
        client->run_at({}, [&] { order.push_back(1); });
    });
    EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST(HttpClient, TasksThatStartTasksDoNotStopItsCalls) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    std::atomic<bool> is_over = false;
    std::function<void()> again;
    const auto client = make_client();
    again = [&] {
        if (!is_over) {
            client->run_at({}, again);
        }
    };
    client->run_at({}, again);
    const auto response = client->call(get(server.url()));
    is_over = true;
    EXPECT_TRUE(response.has_value());
}

TEST(HttpClient, AnExceptionOfTheSinkEndsOnlyItsCall) {
    HttpScriptServer server{
        answering([](const ScriptRequest&, ScriptConnection& to) { to.reply(200, "ok"); })};
    const auto client = make_client();
    std::promise<Status> done;
    HttpSink sink;
    sink.on_data = [](std::span<const std::byte>) -> bool { throw std::bad_alloc{}; };
    sink.on_done = [&](Status status) { done.set_value(std::move(status)); };
    client->start(get(server.url()), std::move(sink));
    const Status status = done.get_future().get();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
    EXPECT_TRUE(client->call(get(server.url())).has_value());
}

TEST(HttpClient, DestructionDropsTasksThatAreNotDue) {
    const auto kept = std::make_shared<int>(0);
    auto client = make_client();
    client->run_at(kClock.now() + 1h, [kept] { ADD_FAILURE() << "not due"; });
    EXPECT_EQ(kept.use_count(), 2);
    client.reset();
    EXPECT_EQ(kept.use_count(), 1);
}

TEST(HttpClient, DecodesGzipOnRequest) {
    // "hello hello hello" compressed by gzip, as bytes because the server has no compressor.
    const std::string packed(
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x90\x00\x80\x88"
        "\xf9\xe5\x11\x00\x00\x00",
        28);
    HttpScriptServer server{answering([&](const ScriptRequest& request, ScriptConnection& to) {
        const auto accepted = request.headers.find("accept-encoding");
        const bool gzip = accepted != request.headers.end() && accepted->second == "gzip";
        to.reply(200, gzip ? packed : "plain", gzip ? "Content-Encoding: gzip\r\n" : "");
    })};
    const auto client = make_client();
    EXPECT_EQ(client->call(get(server.url()))->body, "plain");
    HttpRequest request = get(server.url());
    request.accept_gzip = true;
    const auto response = client->call(std::move(request));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "hello hello hello");
}

}  // namespace
}  // namespace stoker::http
