// An informer over real HTTP against a server that restarts, cuts its answers at any byte, is
// silent, or sends objects that cannot be read. tests/unit/operator/kube/watch_test.cc checks what
// follows from each answer.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/base/read_file.h"
#include "operator/kube/access.h"
#include "operator/kube/rest_transport.h"
#include "operator/runtime/informer.h"
#include "tests/support/api_server/server.h"
#include "tests/support/poll.h"
#include "tests/support/test_seed.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using test::ApiServer;
using test::ApiServerModel;
using test::eventually;
using test::Fault;

// An informer of config maps over real HTTP against the fake API server, on its own thread. The
// back-off is short, because these tests do not measure it.
class WatchingInformer {
public:
    WatchingInformer(ApiServer& server, std::uint64_t seed, WatchOptions options = quick())
        : access_(config_of(server), read_file, clock_),
          transport_(access_, {"stoker-test", mib(64), 8}, clock_),
          informer_(
              transport_,
              std::move(options),
              [](const Json& raw) -> Result<Json> { return raw; },
              clock_,
              seed) {}

    static WatchOptions quick() {
        WatchOptions options;
        options.kind = kinds::kConfigMaps;
        options.page_size = 7;
        options.back_off.base = std::chrono::milliseconds{1};
        options.back_off.cap = std::chrono::milliseconds{20};
        return options;
    }

    void start() {
        thread_ = std::jthread([this](const std::stop_token& stop) { informer_.run(stop); });
    }

    void stop() {
        thread_.request_stop();
        thread_.join();
    }

    Informer<Json>& informer() { return informer_; }

    Store<Json>& store() { return informer_.store(); }

    // Maps each key in the store to "uid/version".
    std::map<ObjectKey, std::string> held() {
        std::map<ObjectKey, std::string> all;
        for (const auto& object : store().list()) {
            all[object->key] = object->uid + "/" + object->resource_version;
        }
        return all;
    }

private:
    static AccessConfig config_of(ApiServer& server) {
        AccessConfig config;
        config.server = server.url();
        return config;
    }

    SystemClock clock_;
    AccessSource access_;
    RestTransport transport_;
    Informer<Json> informer_;
    std::jthread thread_;  // last: it uses the members above
};

// The same map as held(), from the server's objects.
std::map<ObjectKey, std::string> truth(
    ApiServer& server, const ResourceKind& kind = kinds::kConfigMaps) {
    std::map<ObjectKey, std::string> all;
    server.with_model([&](ApiServerModel& model) {
        for (const auto& [key, json] : model.all(kind)) {
            const auto object = read_object(json);
            all[key] = object->uid + "/" + object->resource_version;
        }
    });
    return all;
}

std::string named(const std::string& name, const std::string& data = "") {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"v":"{}"}}}})", name, data);
}

void change_something(ApiServer& server, Prng& prng) {
    const std::string name = fmt::format("m{}", prng.below(6));
    const ObjectKey key{"demo", name};
    switch (prng.below(3)) {
        case 0:
            server.create(kinds::kConfigMaps, "demo", named(name));
            break;
        case 1:
            server.merge(
                kinds::kConfigMaps, key, fmt::format(R"({{"data":{{"v":"{}"}}}})", prng()));
            break;
        default:
            server.erase(kinds::kConfigMaps, key);
    }
}

TEST(KubeWatchCut, RandomCutsAndResetsLoseNothing) {
    Prng prng(test::seed());
    std::uint64_t troubles = 0;
    for (int round = 0; round < 12; ++round) {
        ApiServer server;
        server.set_bookmark_interval(std::chrono::milliseconds{5});
        WatchingInformer watching(server, prng());
        watching.start();
        for (int change = 0; change < 150; ++change) {
            if (prng.below(6) == 0) {
                Fault fault;
                fault.target_contains = prng.below(4) == 0 ? "" : "watch=1";
                fault.cut_after = 1 + prng.below(3000);
                fault.reset = prng.below(2) == 0;
                fault.split_seed = prng();
                server.add_fault(fault);
            }
            if (prng.below(15) == 0) {
                server.cut_watches(prng.below(2) == 0);
            }
            if (prng.below(40) == 0) {
                server.with_model([](ApiServerModel& model) { model.compact(kinds::kConfigMaps); });
            }
            change_something(server, prng);
            if (prng.below(5) == 0) {
                ASSERT_TRUE(eventually([&] { return watching.held() == truth(server); }))
                    << "round " << round << ", change " << change;
            }
        }
        server.clear_faults();
        ASSERT_TRUE(eventually([&] { return watching.held() == truth(server); }))
            << "round " << round;
        troubles += watching.informer().counts().troubles;
        watching.stop();
    }
    EXPECT_GT(troubles, 12U) << "the faults did bite";
}

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

    void create(const std::string& name) { server.create(kinds::kConfigMaps, "demo", named(name)); }

    ApiServer server;
    std::unique_ptr<WatchingInformer> watching;
};

TEST_F(KubeWatchFaults, ServerRestartNeedsNoList) {
    create("a");
    start();
    // By then the watch has run for over a second, so its end does not count as a failure.
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
    })) << "another object has the name: the old state is not its state";
}

}  // namespace
}  // namespace stoker::control
