// The operator requests a measurement of the cache's value: the trainers' clients measure, their
// own sidecar sums the results, and the leader does not prefetch for them meanwhile.
#include "sidecar/service/monitor.h"
#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {
namespace {

class SidecarProbe : public SidecarTest {
protected:
    static void set_probe(RunningSidecar& sidecar, const local::Probe& probe) {
        sidecar.ask([probe](sidecar::Sidecar& inside) {
            inside.set_probe(probe);
            return true;
        });
    }

    [[nodiscard]] static control::ProbeReport told(RunningSidecar& sidecar) {
        return sidecar.ask(
            [](sidecar::Sidecar& inside) { return sidecar::link_report(inside).trainer.probe; });
    }

    [[nodiscard]] static local::Probe ask(SampleClient& client) {
        client.send(local::AskProbe{});
        const auto answer = client.receive();
        EXPECT_TRUE(answer.has_value());
        return answer ? std::get<local::Probe>(answer->message) : local::Probe{};
    }
};

TEST_F(SidecarProbe, SumsTheMeasurementsOfItsPodsProcesses) {
    start();
    SampleClient first = connect(9);
    SampleClient second = connect(9);
    EXPECT_EQ(ask(first), local::Probe{});
    set_probe(*running, {7, 20});
    EXPECT_EQ(ask(first), (local::Probe{7, 20}));
    first.send(local::Probed{7, false, 10, 300, 1000, 20, 100, 2000});
    second.send(local::Probed{7, true, 5, 150, 500, 20, 100, 2000});
    second.send(local::Probed{6, false, 99, 99, 99, 99, 99, 99});
    ASSERT_TRUE(eventually([&] { return told(*running).bypassed.batches == 15; }));
    EXPECT_EQ(told(*running).id, 7U);
    EXPECT_EQ(told(*running).bypassed.time, Duration{450});
    EXPECT_EQ(told(*running).bypassed.bytes, Bytes{1500});
    EXPECT_EQ(told(*running).cached.batches, 40U);
    second.close();
    first.send(local::Probed{7, false, 20, 600, 2000, 20, 100, 2000});
    ASSERT_TRUE(eventually([&] { return told(*running).bypassed.batches == 25; }))
        << "what a process told stays when it ends";
    EXPECT_EQ(ask(first), local::Probe{}) << "it is measured";
    set_probe(*running, {8, 20});
    EXPECT_EQ(ask(first), (local::Probe{8, 20}));
    EXPECT_EQ(told(*running).bypassed.batches, 0U);
}

TEST_F(SidecarProbe, AFollowersTrainerMeasuresForItsOwnPod) {
    start();
    ASSERT_TRUE(
        eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
    sidecar::SidecarConfig second_config = config;
    second_config.socket_path = folder.path() + "/second.sock";
    FakeOrigin* second_origin = nullptr;
    const auto second = run(second_config, second_origin);
    SampleClient client{second_config.socket_path};
    ASSERT_TRUE(client.hello("train", 5).has_value());
    set_probe(*second, {7, 20});
    EXPECT_EQ(ask(client), (local::Probe{7, 20}));
    client.send(local::Probed{7, true, 0, 0, 0, 20, 100, 2000});
    ASSERT_TRUE(client.plan(1, all()).has_value());
    ASSERT_TRUE(eventually([&] { return told(*second).cached.batches == 20; }));
    EXPECT_EQ(told(*running).id, 0U);
    EXPECT_EQ(origin->fetches(), 0U) << "nothing is fetched ahead for who reads past the cache";
    client.send(local::Probed{7, false, 20, 300, 2000, 20, 100, 2000});
    ASSERT_TRUE(eventually([&] { return origin->fetches() == 200U; }));
    EXPECT_EQ(told(*second).bypassed.batches, 20U);
}

}  // namespace
}  // namespace stoker::test
