// A watch may be cut at any byte, in any piece, at any time: the store must end equal to the server
// (fault list 3).
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/integration/kube_watch_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::control {
namespace {

using test::ApiServer;
using test::eventually;
using test::Fault;

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

TEST(KubeWatchCut, CutAfterAnyByteLosesNothing) {
    // Enough for the head, two events and their chunk frames, and a margin.
    constexpr std::size_t kBytes = 700;
    int changes_seen = 0;
    for (std::size_t cut = 1; cut < kBytes; cut += 1) {
        ApiServer server;
        server.create(kinds::kConfigMaps, "demo", named("first"));
        Fault fault;
        fault.target_contains = "watch=1";
        fault.cut_after = cut;
        fault.reset = cut % 2 == 0;
        server.add_fault(fault);
        WatchingInformer watching(server, cut);
        watching.start();
        ASSERT_TRUE(eventually([&] { return watching.informer().has_synced(); })) << cut;
        server.create(kinds::kConfigMaps, "demo", named("second"));
        server.merge(kinds::kConfigMaps, {"demo", "first"}, R"({"data":{"v":"2"}})");
        server.erase(kinds::kConfigMaps, {"demo", "second"});
        server.create(kinds::kConfigMaps, "demo", named("second", "again"));
        ASSERT_TRUE(eventually([&] { return watching.held() == truth(server); }))
            << "cut after " << cut << " bytes";
        changes_seen += watching.informer().counts().events > 0 ? 1 : 0;
        watching.stop();
    }
    EXPECT_GT(changes_seen, 100) << "the watch was used, not only lists";
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
                server.with_model(
                    [](test::ApiServerModel& model) { model.compact(kinds::kConfigMaps); });
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

}  // namespace
}  // namespace stoker::control
