// A sidecar with a fake origin, used over its socket without faults.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "common/domain/segment_format.h"
#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {
namespace {

using SidecarServe = SidecarTest;

TEST_F(SidecarServe, WelcomesAClientWithTheRevisionAndTheDirectory) {
    start();
    SampleClient client{config.socket_path};
    const auto welcome = client.hello("train");
    ASSERT_TRUE(welcome.has_value()) << welcome.error().message;
    EXPECT_EQ(welcome->sample_count, 200U);
    EXPECT_EQ(welcome->revision, data.manifest().revision().value());
    EXPECT_EQ(welcome->directory, config.datasets[0].client_directory);
}

TEST_F(SidecarServe, ServesEverySampleOnDemandAndFetchesEachOnce) {
    start();
    SampleClient client = connect();
    read_all(client, all(), 1);
    EXPECT_EQ(origin->fetches(), 200U);
    origin->forget_counts();
    read_all(client, all(), 2);
    EXPECT_EQ(origin->fetches(), 0U);
}

TEST_F(SidecarServe, PrefetchesThePlan) {
    start();
    SampleClient client = connect(5);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    ASSERT_TRUE(eventually([&] { return status().bytes.resident_samples == 200; }));
    for (const std::uint64_t id : all()) {
        const auto bytes = client.read(id);
        ASSERT_TRUE(bytes && bytes->has_value()) << "sample " << id;
        ASSERT_EQ(**bytes, data.payload(domain::SampleId{id}));
    }
    EXPECT_EQ(status().counters.demanded_samples, 0U);
}

TEST_F(SidecarServe, WithHalfTheBytesGrantedEachLaterEpochFetchesTheOtherHalf) {
    std::uint64_t records = 0;
    for (const std::uint64_t id : all()) {
        records += domain::record_bytes(data.manifest().size_bytes(domain::SampleId{id}));
    }
    config.datasets[0].grant_bytes = Bytes{records / 2};
    config.datasets[0].window_bytes = kib(256);
    start();
    SampleClient client = connect(5);
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        auto order = all();
        Prng prng{epoch};
        std::shuffle(order.begin(), order.end(), prng);
        origin->forget_counts();
        ASSERT_TRUE(client.plan(epoch, order).has_value());
        read_all(client, order, epoch);
        const auto now = status();
        EXPECT_LE(now.usage.resident_bytes, config.datasets[0].grant_bytes);
        EXPECT_GT(now.bytes.resident_samples, 80U);
        EXPECT_EQ(origin->fetches(), epoch == 1 ? 200 : 200 - now.bytes.resident_samples);
    }
}

TEST_F(SidecarServe, LruServesEverySampleWithinTheGrantAndEvictsTheOldest) {
    config.datasets[0].grant_bytes = kib(600);  // the dataset has two megabytes
    config.datasets[0].window_bytes = mib(1);
    config.datasets[0].eviction = sidecar::EvictionKind::kLru;
    start();
    SampleClient client = connect(5);
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        auto order = all();
        Prng prng{epoch};
        std::shuffle(order.begin(), order.end(), prng);
        ASSERT_TRUE(client.plan(epoch, order).has_value());
        read_all(client, order, epoch);
        const auto now = status();
        EXPECT_LE(now.usage.resident_bytes, config.datasets[0].grant_bytes);
        EXPECT_GT(now.usage.resident_bytes, kib(500));
    }
    EXPECT_GT(status().counters.evicted_resident_samples, 100U);
    // Without a plan, the samples read last are resident.
    origin->forget_counts();
    read_all(client, {1, 2, 3, 4, 5, 1, 2, 3, 4, 5}, 4);
    EXPECT_LE(origin->fetches(), 5U);
}

// The next job's grant may differ from the last one's, so nothing new is kept until the operator's
// grant arrives.
TEST_F(SidecarServe, KeepsAnEarlierJobsSamplesAndNothingNewBeforeTheFirstGrant) {
    const std::vector<std::uint64_t> left = {1, 2, 3, 4, 5};
    start();
    {
        SampleClient client = connect();
        read_all(client, left, 1);
    }
    stop();
    config.control.endpoint = "operator:9443";
    start();
    SampleClient client = connect();
    read_all(client, all(), 1);
    EXPECT_EQ(origin->fetches(), 195U) << "what was left is served";
    EXPECT_EQ(status().bytes.resident_samples, left.size()) << "and nothing is added to it";
}

TEST_F(SidecarServe, IsWarmAfterACleanStop) {
    start();
    {
        SampleClient client = connect();
        read_all(client, all(), 1);
    }
    stop();
    start();
    SampleClient client = connect();
    read_all(client, all(), 1);
    EXPECT_EQ(origin->fetches(), 0U);
}

TEST_F(SidecarServe, ManyClientsAtOnceCostOneFetchPerSample) {
    start();
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 4; ++reader) {
        readers.emplace_back([this, reader] {
            SampleClient client = connect();
            auto order = all();
            Prng prng{static_cast<std::uint64_t>(reader)};
            std::shuffle(order.begin(), order.end(), prng);
            read_all(client, order, 1);
        });
    }
    for (std::thread& reader : readers) {
        reader.join();
    }
    for (const std::uint64_t id : all()) {
        EXPECT_EQ(origin->fetches_of(domain::SampleId{id}), 1U);
    }
}

}  // namespace
}  // namespace stoker::test
