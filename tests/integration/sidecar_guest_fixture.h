#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {

// A sidecar of the dataset's owner, and sidecars of guests, which see only what the node program
// mounts for them: data/, and their own folder of guests/.
class SidecarGuestTest : public SidecarTest {
protected:
    struct Guest {
        sidecar::SidecarConfig config;
        FakeOrigin* origin = nullptr;
        std::unique_ptr<RunningSidecar> running;

        [[nodiscard]] sidecar::Role role() const {
            return running->ask(
                [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->role(); });
        }

        [[nodiscard]] bool is_ready() const {
            return running->ask(
                [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->is_ready(); });
        }

        [[nodiscard]] std::string error() const {
            return running->ask(
                [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->error(); });
        }
    };

    SidecarGuestTest() { config.job.training_job_uid = "owners-job"; }

    [[nodiscard]] std::string node() const { return config.datasets[0].directory; }

    [[nodiscard]] std::string view(const std::string& name) const {
        return folder.path() + "/view-" + name;
    }

    [[nodiscard]] std::string door(const std::string& name) const {
        return domain::guests_folder(node()) + "/" + name + "/leader.sock";
    }

    // Acts as the node program when a pod of the namespace arrives.
    void show_to(const std::string& name) const {
        std::filesystem::create_directories(domain::data_folder(node()));
        std::filesystem::create_directories(domain::guests_folder(node()) + "/" + name);
        if (!std::filesystem::create_directories(view(name))) {
            return;
        }
        std::filesystem::create_directory_symlink(
            domain::data_folder(node()), domain::data_folder(view(name)));
        std::filesystem::create_directory_symlink(
            domain::guests_folder(node()) + "/" + name, domain::guests_folder(view(name)));
    }

    // Starts a guest's sidecar in the namespace `name`.
    Guest& invite(const std::string& name, const std::string& job = "guests-job") {
        show_to(name);
        Guest& guest = guests.emplace_back();
        guest.config = config;
        guest.config.socket_path = folder.path() + "/" + name + ".sock";
        guest.config.job.training_job_uid = job;
        auto& train = guest.config.datasets[0];
        train.guest = true;
        train.directory = view(name);
        train.client_directory = domain::data_folder(train.directory);
        guest.running = run(guest.config, guest.origin);
        return guest;
    }

    [[nodiscard]] static SampleClient connect_to(const Guest& guest, std::uint64_t stream) {
        SampleClient client{guest.config.socket_path};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    void start_serving() {
        start();
        ASSERT_TRUE(
            eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
    }

    // A raw connection to a guest socket, as from a guest's sidecar.
    [[nodiscard]] SampleClient at_the_door(const std::string& name, std::uint64_t stream) const {
        SampleClient client{door(name)};
        client.send(local::Peer{{}, stream});
        local::Hello hello;
        hello.relay = true;
        hello.dataset = "train";
        hello.stream = stream;
        const auto welcome = client.hello(hello);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    [[nodiscard]] bool is_open(const std::string& name) const {
        return eventually([&] { return std::filesystem::exists(door(name)); });
    }

    std::vector<Guest> guests = reserved();

private:
    static std::vector<Guest> reserved() {
        std::vector<Guest> some;
        some.reserve(16);  // keeps references valid
        return some;
    }
};

}  // namespace stoker::test
