#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/placement.h"
#include "sidecar/device/posix_device.h"
#include "tests/support/dataset.h"
#include "tests/support/fake_origin.h"
#include "tests/support/memory_network.h"
#include "tests/support/poll.h"
#include "tests/support/running_sidecar.h"
#include "tests/support/sample_client.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// Several sidecars on nodes "n0", "n1", ... that lead the same dataset over one fake origin and a
// MemorySwitch. Each has a node directory of its own.
class PeersTest : public testing::Test {
protected:
    // Gives each sidecar an Origin of its own.
    class SharedOrigin final : public sidecar::Origin {
    public:
        SharedOrigin(FakeOrigin& origin, bool lists_forever)
            : origin_(origin),
              lists_forever_(lists_forever) {}

        [[nodiscard]] std::string describe() const override { return origin_.describe(); }

        Result<domain::Listing> list(
            const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
            for (std::uint64_t objects = 1; lists_forever_; ++objects) {
                if (stop.stop_requested()) {
                    return fail(ErrorCode::kCancelled, "the listing was stopped");
                }
                progress(objects);
                std::this_thread::sleep_for(std::chrono::milliseconds{10});
            }
            return origin_.list(progress, std::move(stop));
        }

        void fetch(
            sidecar::OriginFetch request,
            std::function<void(Result<sidecar::OriginBytes>)> done) override {
            origin_.fetch(std::move(request), std::move(done));
        }

    private:
        FakeOrigin& origin_;
        const bool lists_forever_;
    };

    static std::string node_name(std::size_t node) { return "n" + std::to_string(node); }

    sidecar::SidecarConfig config_of(std::size_t node) const {
        const std::string path = folder.path() + "/" + node_name(node);
        sidecar::SidecarConfig config;
        config.socket_path = path + ".sock";
        config.job.pod_namespace = "team";
        config.job.node = node_name(node);
        config.datasets.resize(1);
        auto& train = config.datasets.front();
        train.name = train.uid = "train";
        train.directory = path + "/train";
        train.client_directory = domain::data_folder(train.directory);
        train.window_bytes = mib(64);
        train.reserved_free = 0;
        train.peers = true;
        train.grant_bytes = grant;
        train.max_in_flight = max_in_flight;
        train.pinned = is_pinned;
        train.listing_age_max = listing_age_max;
        config.job.training_job_uid = job_uid;
        config.job.attempt_uid = attempt_uid;
        config.control.endpoint = is_pinned ? "operator:1" : "";
        return config;
    }

    // Starts one more sidecar.
    void start() {
        const std::size_t node = sidecars.size();
        if (origin == nullptr) {
            origin = std::make_unique<FakeOrigin>(data);
        }
        sidecars.push_back(std::make_unique<RunningSidecar>(
            config_of(node),
            *device,
            [this,
             node](const sidecar::DatasetConfig&) -> Result<std::unique_ptr<sidecar::Origin>> {
                return std::make_unique<SharedOrigin>(*origin, node == lists_forever);
            },
            "boot-1",
            [this, node](EventLoop& loop) {
                return std::make_unique<MemoryNetwork>(
                    hub, loop, node_name(node), sidecar::PeerIdentity{"team", {"train"}});
            }));
    }

    [[nodiscard]] sidecar::LeaderStatus status(std::size_t node) const {
        return sidecars.at(node)->ask([](sidecar::Sidecar& sidecar) {
            const auto* leader = sidecar.nodes().front()->leader();
            return leader == nullptr ? sidecar::LeaderStatus{} : leader->status();
        });
    }

    // Makes a group of all sidecars, as the operator does, and waits until all of them know it.
    void form_group() {
        control::PeerGroup group{"train", ++version, {}};
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            ASSERT_TRUE(eventually(
                [&] { return status(node).manifest_state == control::ManifestState::kReady; }));
            const auto now = status(node);
            group.members.push_back({node_name(node), now.peer_address, now.peer_generation});
        }
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            sidecars[node]->ask([&](sidecar::Sidecar& sidecar) {
                sidecar.set_peers(group);
                return true;
            });
        }
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            ASSERT_TRUE(eventually([&] {
                return status(node).peer_members == (sidecars.size() > 1 ? sidecars.size() : 0);
            }));
        }
    }

    void start_group(std::size_t nodes) {
        for (std::size_t node = 0; node < nodes; ++node) {
            start();
        }
        form_group();
    }

    [[nodiscard]] SampleClient connect(std::size_t node, std::uint64_t stream = 0) const {
        SampleClient client{config_of(node).socket_path};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    // Reads the samples one by one, checks their bytes and reports them as consumed.
    void read(std::size_t node, std::uint64_t epoch, const std::vector<std::uint64_t>& ids) const {
        SampleClient client = connect(node, node + 1);
        ASSERT_TRUE(client.plan(epoch, ids));
        for (const std::uint64_t id : ids) {
            const auto bytes = client.get(id);
            ASSERT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
            ASSERT_EQ(*bytes, data.payload(domain::SampleId{id})) << "sample " << id;
            client.consumed(epoch, {id});
        }
    }

    // Each node reads its samples, all at the same time.
    void read_all(std::uint64_t epoch, const std::vector<std::vector<std::uint64_t>>& ids) const {
        std::vector<std::thread> readers;
        for (std::size_t node = 0; node < ids.size(); ++node) {
            readers.emplace_back([this, node, epoch, &ids] { read(node, epoch, ids[node]); });
        }
        for (auto& reader : readers) {
            reader.join();
        }
    }

    [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
        std::vector<std::uint64_t> ids(data.manifest().sample_count());
        Prng prng{seed};
        for (std::uint64_t i = 0; i < ids.size(); ++i) {
            const std::uint64_t j = prng.below(i + 1);
            ids[i] = ids[j];
            ids[j] = i;
        }
        return ids;
    }

    // The samples that the node owns in a group of `nodes`.
    [[nodiscard]] std::vector<std::uint64_t> owned_by(std::size_t node, std::size_t nodes) const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < nodes; ++i) {
            names.push_back(node_name(i));
        }
        const sidecar::Placement placement{
            data.manifest(),
            [this](auto sample) { return data.manifest().sample(domain::SampleId{sample}).key; },
            names,
            node};
        std::vector<std::uint64_t> ids;
        for (std::uint32_t id = 0; id < data.manifest().sample_count(); ++id) {
            if (placement.is_own(id)) {
                ids.push_back(id);
            }
        }
        return ids;
    }

    // Record bytes of the samples.
    [[nodiscard]] Bytes records(const std::vector<std::uint64_t>& ids) const {
        Bytes sum{};
        for (const std::uint64_t id : ids) {
            sum += Bytes{domain::record_bytes(data.manifest().size_bytes(domain::SampleId{id}))};
        }
        return sum;
    }

    TempFolder folder;
    Dataset data = Dataset::random(200, 20000, 1);
    std::unique_ptr<FakeOrigin> origin;  // set by start()
    MemorySwitch hub;
    std::unique_ptr<sidecar::Device> device = sidecar::make_posix_device();
    Bytes grant = Bytes::unlimited();
    std::uint32_t max_in_flight = 32;
    std::optional<std::size_t> lists_forever{};  // the listing of this node never ends by itself
    bool is_pinned = false;                      // by an operator that tests play
    std::string job_uid;                         // of sidecars that start from now on
    std::string attempt_uid;                     // likewise
    std::optional<Duration> listing_age_max;     // likewise
    std::uint64_t version = 0;
    std::vector<std::unique_ptr<RunningSidecar>> sidecars;
};

}  // namespace stoker::test
