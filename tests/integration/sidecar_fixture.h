#pragma once

#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "sidecar/device/posix_device.h"
#include "tests/support/dataset.h"
#include "tests/support/fake_origin.h"
#include "tests/support/poll.h"
#include "tests/support/running_sidecar.h"
#include "tests/support/sample_client.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// A sidecar of one dataset "train" of 200 samples over a fake origin, with its node directory and
// sockets in a temporary folder. Settings may be changed in `config` before start().
class SidecarTest : public testing::Test {
protected:
    SidecarTest() {
        config.socket_path = folder.path() + "/stoker.sock";
        config.datasets.resize(1);
        auto& train = config.datasets.front();
        train.name = train.uid = "train";
        train.directory = folder.path() + "/node/train";
        train.client_directory = domain::data_folder(train.directory);
        train.window_bytes = mib(64);
        train.reserved_free = 0;
    }

    // Makes a sidecar with these settings over its own origin; `made` receives the origin.
    std::unique_ptr<RunningSidecar> run(sidecar::SidecarConfig settings, FakeOrigin*& made) {
        return std::make_unique<RunningSidecar>(
            std::move(settings),
            *device,
            [this,
             &made](const sidecar::DatasetConfig&) -> Result<std::unique_ptr<sidecar::Origin>> {
                auto fresh = std::make_unique<FakeOrigin>(data);
                fresh->fail_with(origin_error);
                if (listed) {
                    fresh->list_instead(*listed);
                }
                fresh->take_key(!origin_has_key);
                made = fresh.get();
                return fresh;
            },
            boot_id);
    }

    void start() { running = run(config, origin); }

    void stop() { running.reset(); }

    [[nodiscard]] SampleClient connect(std::uint64_t stream = 0) const {
        SampleClient client{config.socket_path};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    [[nodiscard]] std::vector<std::uint64_t> all() const {
        std::vector<std::uint64_t> ids(data.manifest().sample_count());
        std::iota(ids.begin(), ids.end(), 0U);
        return ids;
    }

    // Reads the samples one by one, checks their bytes and reports them as consumed.
    void read_all(
        SampleClient& client, const std::vector<std::uint64_t>& ids, std::uint64_t epoch) const {
        for (const std::uint64_t id : ids) {
            const auto bytes = client.get(id);
            ASSERT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
            ASSERT_EQ(*bytes, data.payload(domain::SampleId{id})) << "sample " << id;
            client.consumed(epoch, {id});
        }
    }

    [[nodiscard]] sidecar::LeaderStatus status() const {
        return running->ask([](sidecar::Sidecar& sidecar) {
            const auto* leader = sidecar.nodes().front()->leader();
            return leader == nullptr ? sidecar::LeaderStatus{} : leader->status();
        });
    }

    TempFolder folder;
    Dataset data = Dataset::random(200, 20000, 1);
    std::unique_ptr<sidecar::Device> device = sidecar::make_posix_device();
    sidecar::SidecarConfig config;
    std::string boot_id = "boot-1";
    std::optional<Error> origin_error;
    std::optional<std::vector<domain::ListedObject>> listed;  // for new origins, instead of `data`
    bool origin_has_key = true;
    FakeOrigin* origin = nullptr;  // of the running sidecar
    std::unique_ptr<RunningSidecar> running;
};

}  // namespace stoker::test
