// An informer against servers that restart, expire versions, refuse, repeat and reorder (fault list
// 1, 2, 4-6, 8, 28, 33). The number of lists shows whether it recovered cheaply.
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/runtime/reconciler.h"
#include "tests/integration/kube_watch_fixture.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ApiServer;
using test::ApiServerModel;
using test::eventually;
using test::Fault;

class KubeWatchFaults : public ::testing::Test {
protected:
    void start(WatchOptions options = WatchingInformer::quick()) {
        watching = std::make_unique<WatchingInformer>(server, 1, std::move(options));
        watching->start();
        ASSERT_TRUE(eventually([&] { return watching->informer().has_synced(); }));
        ASSERT_TRUE(eventually([&] { return server.open_watches() == 1; }));
    }

    [[nodiscard]] bool follows() {
        return eventually([&] { return watching->held() == truth(server); });
    }

    [[nodiscard]] std::uint64_t lists() const { return watching->informer().counts().lists; }

    static Fault of_watch() {
        Fault fault;
        fault.target_contains = "watch=1";
        return fault;
    }

    static Fault of_list() {
        Fault fault;
        fault.target_contains = "configmaps?";
        return fault;
    }

    static std::string status(int code, const std::string& reason) {
        return fmt::format(
            R"({{"kind":"Status","code":{},"reason":"{}","message":"m"}})", code, reason);
    }

    static std::string error_line(int code, const std::string& reason) {
        return R"({"type":"ERROR","object":)" + status(code, reason) + "}\n";
    }

    void create(const std::string& name) { server.create(kinds::kConfigMaps, "demo", named(name)); }

    ApiServer server;
    std::unique_ptr<WatchingInformer> watching;
};

TEST_F(KubeWatchFaults, ServerRestartNeedsNoList) {
    create("a");
    start();
    // Older than a second, so that its end does not count as a failed watch.
    create("b");
    ASSERT_TRUE(follows());
    server.set_down(true);
    ASSERT_TRUE(eventually([&] { return watching->informer().counts().troubles >= 3; }));
    server.with_model([](ApiServerModel& model) {
        model.handle(
            {"POST",
             "/api/v1/namespaces/demo/configmaps",
             "application/json",
             R"({"kind":"ConfigMap","metadata":{"name":"c"}})"},
            WallTime{});
    });
    server.set_down(false);
    ASSERT_TRUE(follows());
    EXPECT_EQ(lists(), 1U);
    EXPECT_EQ(watching->held().size(), 3U);
}

TEST_F(KubeWatchFaults, BacksOffWhileTheServerIsDown) {
    WatchOptions options = WatchingInformer::quick();
    options.back_off.base = milliseconds{50};
    options.back_off.cap = milliseconds{400};
    create("a");
    start(options);
    create("b");
    ASSERT_TRUE(follows());
    server.set_down(true);
    const auto before = watching->informer().counts().troubles;
    const SystemClock clock;
    const TimePoint from = clock.now();
    ASSERT_TRUE(eventually([&] { return watching->informer().counts().troubles >= before + 6; }));
    // At least 50, 100, 200, 400 and 400 ms, each with up to 100 % jitter.
    EXPECT_GE(clock.now() - from, milliseconds{1100});
}

TEST_F(KubeWatchFaults, EveryExpiryResponseLeadsToOneFreshList) {
    const std::function<void()> ways[] = {
        [&] {  // as an event of the running watch; the list at that version succeeds
            server.with_model([](ApiServerModel& model) { model.compact(kinds::kConfigMaps); });
        },
        [&] {  // as the response to the watch
            Fault fault = of_watch();
            fault.status = 410;
            fault.body = status(410, "Expired");
            server.add_fault(fault);
            server.cut_watches();
        },
        [&] {  // as the response to the watch and to the list at the last version
            Fault open = of_watch();
            open.status = 410;
            server.add_fault(open);
            Fault list = of_list();
            list.status = 410;
            server.add_fault(list);
            server.cut_watches();
        },
    };
    create("gone");
    create("stays");
    start();
    for (const auto& expire : ways) {
        const auto before = lists();
        create("fresh");
        ASSERT_TRUE(follows());
        server.set_down(true);
        server.erase(kinds::kConfigMaps, {"demo", "gone"});
        server.erase(kinds::kConfigMaps, {"demo", "fresh"});
        create("new");
        server.set_down(false);
        expire();
        ASSERT_TRUE(follows());
        ASSERT_TRUE(eventually([&] { return lists() > before || server.open_watches() == 1; }));
        ASSERT_TRUE(follows());
        server.erase(kinds::kConfigMaps, {"demo", "new"});
        ASSERT_TRUE(follows());
        create("gone");
        ASSERT_TRUE(follows());
        server.clear_faults();
    }
    EXPECT_GE(lists(), 3U);
}

TEST_F(KubeWatchFaults, ExpiredSecondPageLeadsToOneUnpagedList) {
    for (int i = 0; i < 20; ++i) {
        create(fmt::format("m{}", i));
    }
    Fault fault;
    fault.target_contains = "continue=";
    fault.status = 410;
    server.add_fault(fault);
    start();
    EXPECT_TRUE(follows());
    EXPECT_EQ(lists(), 1U);
    EXPECT_EQ(server.count("GET", "limit=7&continue"), 1U);
    EXPECT_EQ(server.count("GET", "configmaps?resourceVersion=0"), 1U) << "unpaged";
}

TEST_F(KubeWatchFaults, FollowsServerRestoredFromABackup) {
    create("a");
    auto backup = server.with_model([](ApiServerModel& model) { return model.backup(); });
    start();
    for (int i = 0; i < 10; ++i) {
        create(fmt::format("later{}", i));
    }
    ASSERT_TRUE(follows());
    server.set_down(true);
    server.with_model([&](ApiServerModel& model) { model = backup; });
    server.set_down(false);
    ASSERT_TRUE(follows());
    EXPECT_EQ(watching->held().size(), 1U);
    EXPECT_GE(server.count("GET", "configmaps?limit=7"), 1U) << "asked for the newest there is";
    create("after");
    EXPECT_TRUE(follows());
}

TEST_F(KubeWatchFaults, TooManyRequestsCausesNoList) {
    create("a");
    start();
    create("b");
    ASSERT_TRUE(follows());
    Fault fault = of_watch();
    fault.status = 429;
    fault.times = 5;
    server.add_fault(fault);
    Fault event = of_watch();
    event.first_lines = {error_line(429, "TooManyRequests")};
    server.add_fault(event);
    server.cut_watches();
    create("c");
    ASSERT_TRUE(eventually([&] { return watching->informer().counts().troubles >= 6; }));
    EXPECT_TRUE(follows());
    EXPECT_EQ(lists(), 1U);
}

TEST_F(KubeWatchFaults, ObeysRetryAfter) {
    create("a");
    start();
    create("b");
    ASSERT_TRUE(follows());
    Fault fault = of_watch();
    fault.status = 429;
    fault.retry_after = "1";
    server.add_fault(fault);
    const SystemClock clock;
    const TimePoint from = clock.now();
    server.cut_watches();
    ASSERT_TRUE(eventually([&] { return watching->informer().counts().troubles >= 1; }));
    create("c");
    ASSERT_TRUE(follows());
    EXPECT_GE(clock.now() - from, seconds{1});
}

TEST_F(KubeWatchFaults, ListsAfterTooManyInternalErrors) {
    WatchOptions options = WatchingInformer::quick();
    options.internal_error_bound = milliseconds{200};
    create("a");
    start(options);
    Fault fault = of_watch();
    fault.first_lines = {error_line(500, "InternalError")};
    fault.times = -1;
    server.add_fault(fault);
    server.cut_watches();
    EXPECT_TRUE(eventually([&] { return lists() >= 3; })) << "it lists again and again";
    EXPECT_GE(server.count("GET", "watch=1"), 4U) << "but watched several times before";
    server.clear_faults();
    create("b");
    EXPECT_TRUE(follows());
}

TEST_F(KubeWatchFaults, RepeatedOrReorderedEventsLoseNothing) {
    create("a");
    start();
    Fault fault = of_watch();
    fault.times = -1;
    fault.no_bookmarks = true;
    fault.rewrite = [flip = false](std::vector<std::string>& lines) mutable {
        flip = !flip;
        if (flip && lines.size() > 1) {
            std::swap(lines.front(), lines.back());
        }
        const std::vector<std::string> once = lines;
        lines.insert(lines.end(), once.begin(), once.end());
    };
    server.add_fault(fault);
    server.cut_watches();
    for (int i = 0; i < 60; ++i) {
        create(fmt::format("m{}", i % 7));
        server.merge(
            kinds::kConfigMaps,
            {"demo", fmt::format("m{}", i % 5)},
            fmt::format(R"({{"data":{{"v":"{}"}}}})", i));
        server.erase(kinds::kConfigMaps, {"demo", fmt::format("m{}", i % 3)});
        if (i % 6 == 0) {
            ASSERT_TRUE(follows()) << i;
        }
    }
    EXPECT_TRUE(follows());
}

TEST_F(KubeWatchFaults, HalfOpenWatchEndsAtItsTimeLimit) {
    WatchOptions options = WatchingInformer::quick();
    options.watch_seconds_min = 1;
    options.watch_seconds_max = 1;
    options.watch_grace = milliseconds{200};
    create("a");
    Fault fault = of_watch();
    fault.half_open = true;
    server.add_fault(fault);
    start(options);
    create("b");
    EXPECT_TRUE(follows()) << "noticed after 1.2 s, nothing was said on the wire";
}

TEST_F(KubeWatchFaults, CleanlyEndedWatchReopensWithoutAList) {
    WatchOptions options = WatchingInformer::quick();
    options.watch_seconds_min = 1;
    options.watch_seconds_max = 1;
    create("a");
    start(options);
    EXPECT_TRUE(eventually([&] { return server.count("GET", "watch=1") >= 3; }));
    EXPECT_EQ(lists(), 1U);
    EXPECT_EQ(watching->informer().counts().troubles, 0U);
}

TEST_F(KubeWatchFaults, OverlongLineCausesARelist) {
    WatchOptions options = WatchingInformer::quick();
    options.line_bytes_max = 1000;
    create("a");
    start(options);
    server.create(kinds::kConfigMaps, "demo", named("huge", std::string(5000, 'x')));
    EXPECT_TRUE(follows()) << "the list brings what the watch would not carry";
    create("b");
    EXPECT_TRUE(follows());
    EXPECT_GE(lists(), 2U);
}

TEST_F(KubeWatchFaults, ListsTenThousandObjectsInPages) {
    server.with_model([](ApiServerModel& model) {
        for (int i = 0; i < 10'000; ++i) {
            model.handle(
                {"POST",
                 "/api/v1/namespaces/demo/configmaps",
                 "application/json",
                 fmt::format(R"({{"kind":"ConfigMap","metadata":{{"name":"m{}"}}}})", i)},
                WallTime{});
        }
    });
    WatchOptions options = WatchingInformer::quick();
    options.page_size = 500;
    start(options);
    EXPECT_EQ(watching->store().size(), 10'000U);
    EXPECT_EQ(server.count("GET", "limit=500"), 20U);
}

// Fault 9: events arrive faster than they are handled. Only keys queue up, at most one per object.
TEST_F(KubeWatchFaults, BurstQueuesOneKeyPerObject) {
    const SystemClock clock;
    Reconciler queue(
        "test", [](const ObjectKey&) -> Result<Reconciled> { return Reconciled{}; }, clock);
    watching = std::make_unique<WatchingInformer>(server, 1);
    watching->informer().add_handler(
        [&](const Change<Json>& change) { queue.add(change.object().key); });
    watching->start();
    for (int i = 0; i < 20; ++i) {
        create(fmt::format("m{}", i));
    }
    ASSERT_TRUE(eventually([&] { return watching->informer().has_synced(); }));
    for (int i = 0; i < 8'000; ++i) {
        server.merge(
            kinds::kConfigMaps,
            {"demo", fmt::format("m{}", i % 20)},
            fmt::format(R"({{"data":{{"v":"{}"}}}})", i));
    }
    ASSERT_TRUE(follows());
    EXPECT_EQ(queue.queue_counts().waiting, 20U);
    EXPECT_EQ(lists(), 1U) << "the socket was read all the time";
    EXPECT_GE(watching->informer().counts().events, 8'000U);
}

TEST_F(KubeWatchFaults, PicksUpAKindOnceItIsServed) {
    server.with_model([](ApiServerModel& model) { model.stop_serving(kinds::kDatasets); });
    WatchOptions options = WatchingInformer::quick();
    options.kind = kinds::kDatasets;
    watching = std::make_unique<WatchingInformer>(server, 1, options);
    watching->start();
    ASSERT_TRUE(eventually([&] { return watching->informer().counts().troubles >= 3; }));
    EXPECT_FALSE(watching->informer().has_synced());
    server.with_model([](ApiServerModel& model) { model.serve(kinds::kDatasets, true); });
    server.create(kinds::kDatasets, "demo", named("d"));
    ASSERT_TRUE(eventually([&] { return watching->store().size() == 1; }));
    server.with_model([](ApiServerModel& model) { model.stop_serving(kinds::kDatasets); });
    ASSERT_TRUE(eventually([&] { return server.open_watches() == 0; }));
    server.with_model([](ApiServerModel& model) { model.serve(kinds::kDatasets, true); });
    ASSERT_TRUE(eventually([&] { return watching->store().size() == 0; }))
        << "deleted and made again: what was there is gone";
}

TEST_F(KubeWatchFaults, UnreadableObjectKeepsItsLastReadableState) {
    const SystemClock clock;
    AccessConfig config;
    config.server = server.url();
    AccessSource access(config, read_file, clock);
    RestTransport transport(access, {"test", mib(64), 8}, clock);
    Informer<std::string> informer(
        transport,
        WatchingInformer::quick(),
        [](const Json& raw) -> Result<std::string> {
            const std::string text = raw.text();
            if (text.find("poison") != std::string::npos) {
                return fail(ErrorCode::kInvalidArgument, "poisoned");
            }
            return text;
        },
        clock,
        1);
    std::atomic<int> reported{0};
    informer.set_on_unreadable([&](const Object&, const Error&) { ++reported; });
    server.create(kinds::kConfigMaps, "demo", named("bad", "poison"));
    create("good");
    create("turning");
    std::jthread thread([&](const std::stop_token& stop) { informer.run(stop); });
    ASSERT_TRUE(eventually([&] { return informer.has_synced(); }));
    EXPECT_EQ(informer.store().size(), 2U);
    const auto version_of = [&](const std::string& name) {
        const auto held = informer.store().get({"demo", name});
        return held ? held->resource_version : std::string("none");
    };
    const std::string before = version_of("turning");
    server.merge(kinds::kConfigMaps, {"demo", "turning"}, R"({"data":{"v":"poison"}})");
    ASSERT_TRUE(eventually([&] { return reported >= 2; }));
    server.merge(kinds::kConfigMaps, {"demo", "good"}, R"({"data":{"v":"2"}})");
    ASSERT_TRUE(eventually([&] {
        const auto good = informer.store().get({"demo", "good"});
        return good && good->value.find("\"2\"") != std::string::npos;
    }));
    EXPECT_EQ(version_of("turning"), before);
    server.erase(kinds::kConfigMaps, {"demo", "turning"});
    server.create(kinds::kConfigMaps, "demo", named("turning", "poison"));
    EXPECT_TRUE(eventually([&] {
        return informer.store().get({"demo", "turning"}) == nullptr;
    })) << "another object under the name: the old state would be a lie";
}

}  // namespace
}  // namespace stoker::control
