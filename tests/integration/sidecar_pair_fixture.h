#pragma once

#include <algorithm>

#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {

// Two sidecars on one node directory, as in two pods: the first leads, the second follows.
class SidecarPairTest : public SidecarTest {
protected:
    SidecarPairTest() {
        config.job.training_job_uid = "job-1";  // pods of one job share one key
        second_config = config;
        second_config.socket_path = folder.path() + "/second.sock";
        // The other pod mounts the directory elsewhere.
        second_config.datasets[0].client_directory = folder.path() + "/elsewhere";
        std::filesystem::create_directories(folder.path() + "/node");
        std::filesystem::create_symlink(
            folder.path() + "/node/train/data", second_config.datasets[0].client_directory);
    }

    void start_both() {
        start();
        ASSERT_TRUE(
            eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
        second = run(second_config, second_origin);
    }

    [[nodiscard]] SampleClient connect_second(std::uint64_t stream) const {
        SampleClient client{second_config.socket_path};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    [[nodiscard]] sidecar::Role second_role() const {
        return second->ask([](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->role(); });
    }

    [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
        auto order = all();
        Prng prng{seed};
        std::shuffle(order.begin(), order.end(), prng);
        return order;
    }

    sidecar::SidecarConfig second_config;
    FakeOrigin* second_origin = nullptr;
    std::unique_ptr<RunningSidecar> second;
};

}  // namespace stoker::test
