#include "sidecar/core/sampling/clairvoyant_model.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr double kMb = 1e6;

BandwidthCurve curve(std::vector<BandwidthCurve::Point> points) {
    return *BandwidthCurve::make(std::move(points));
}

// The paper's small cluster: 4 workers on a filesystem measured with 1, 2, 4 and 8 clients.
NodeModel node(double clients = 4) {
    const auto origin = curve({{1, 330 * kMb}, {2, 730 * kMb}, {4, 1540 * kMb}, {8, 2870 * kMb}});
    const auto ram = curve({{1, 10000 * kMb}, {8, 85000 * kMb}});
    const auto ssd = curve({{1, 2000 * kMb}, {4, 4000 * kMb}});
    return {
        .compute = 64 * kMb,
        .preprocess = 200 * kMb,
        .peer = 24000 * kMb,
        .origin = origin,
        .origin_clients = clients,
        .staging = {ram, ram, 4},
        .tiers = {{ram, ram, 4}, {ssd, ssd, 2}}};
}

TEST(BandwidthCurve, InterpolatesLinearly) {
    const auto origin = curve({{1, 330}, {2, 730}, {4, 1540}, {8, 2870}});
    EXPECT_DOUBLE_EQ(origin.total(1), 330);
    EXPECT_DOUBLE_EQ(origin.total(3), (730 + 1540) / 2.0);
    EXPECT_DOUBLE_EQ(origin.total(0.5), 165);
    EXPECT_DOUBLE_EQ(origin.total(100), 2870);
    EXPECT_DOUBLE_EQ(origin.each(4), 385);
}

TEST(BandwidthCurve, RejectsInvalidPoints) {
    EXPECT_FALSE(BandwidthCurve::make({}).has_value());
    EXPECT_FALSE(BandwidthCurve::make({{0, 1}}).has_value());
    EXPECT_FALSE(BandwidthCurve::make({{2, 1}, {2, 2}}).has_value());
    EXPECT_FALSE(BandwidthCurve::make({{1, 0}}).has_value());
}

TEST(ClairvoyantModel, ChoosesTheFastestSource) {
    const Bytes size = Bytes{1'000'000};
    const NodeModel here = node();
    EXPECT_EQ(choose_source(here, size, {}).source, Source::kOrigin);
    EXPECT_DOUBLE_EQ(choose_source(here, size, {}).seconds, 4.0 / 385) << "four threads share it";
    EXPECT_EQ(choose_source(here, size, {.local_tier = 1, .peer_tier = 0}).source, Source::kPeer);
    EXPECT_EQ(choose_source(here, size, {.local_tier = 0, .peer_tier = 0}).source, Source::kLocal)
        << "between equals, here";
    EXPECT_EQ(choose_source(here, size, {.local_tier = 1}).source, Source::kLocal);
    NodeModel slow = here;
    slow.peer = 100 * kMb;
    EXPECT_EQ(choose_source(slow, size, {.peer_tier = 0}).source, Source::kOrigin)
        << "a slow network is no reason to spare the origin";
}

TEST(ClairvoyantModel, WaitsForBytesAndForTheTrainer) {
    NodeModel fast = node();
    fast.staging.threads = 1;
    const std::vector<ModelRead> stream(3, {Bytes{1'000'000}, {.local_tier = 0}});
    const double step = 1.0 / 64;
    const auto times = consume_times(fast, stream);
    ASSERT_EQ(times.size(), 4U);
    const double first = choose_source(fast, stream[0].size, stream[0].copies).seconds +
                         write_seconds(fast, stream[0].size);
    EXPECT_DOUBLE_EQ(times[0], first);
    EXPECT_DOUBLE_EQ(times[3], first + 3 * step) << "then only the trainer takes time";

    NodeModel starved = fast;
    starved.compute = 1e15;
    const auto waits = consume_times(starved, stream);
    EXPECT_NEAR(waits[3], 3 * first, 1e-6);
}

TEST(ClairvoyantModel, MoreThreadsMakeNoSourceFaster) {
    const Bytes size{100'000};
    for (const Copies copies : {Copies{}, Copies{.local_tier = 1}, Copies{.peer_tier = 1}}) {
        NodeModel one = node();
        one.staging.threads = 1;
        one.compute = one.preprocess = 1e15;
        one.peer = 500 * kMb;
        NodeModel many = one;
        many.staging.threads = 16;
        const std::vector<ModelRead> stream(1000, {size, copies});
        const double alone = choose_source(one, size, copies).seconds * 1000;
        EXPECT_GE(consume_times(many, stream).back(), alone);
        EXPECT_LT(consume_times(many, stream).back(), 1.1 * alone);
    }
}

// The naive policy, which fetches each sample when it is needed, takes longer than a staging
// buffer, which fetches ahead. NoPFS, with cached samples, takes hardly longer than the computing.
TEST(ClairvoyantModel, OrdersThePoliciesAsThePaperDoes) {
    NodeModel cluster = node(64);  // a crowded filesystem: each gets 45 MB/s
    cluster.staging.threads = 2;
    const Bytes size{100'000};
    const std::vector<ModelRead> from_origin(1000, {size, {}});
    std::vector<ModelRead> cached(1000, {size, {.local_tier = 0}});
    for (std::size_t i = 0; i < cached.size(); i += 10) {
        cached[i].copies = {.peer_tier = 0};
    }
    double naive = 0;  // one thread, which has the node's rate for itself
    NodeModel alone = cluster;
    alone.staging.threads = 1;
    const double compute = 1000.0 * 100'000 / cluster.compute;
    for (const ModelRead& read : from_origin) {
        naive +=
            choose_source(alone, read.size, read.copies).seconds + write_seconds(alone, read.size);
    }
    naive += compute;
    const double staging = consume_times(cluster, from_origin).back();
    const double nopfs = consume_times(cluster, cached).back();
    EXPECT_GT(naive, 1.5 * staging);
    EXPECT_GT(staging, nopfs);
    EXPECT_GE(nopfs, compute);
    EXPECT_LT(nopfs, 1.01 * compute);
}

}  // namespace
}  // namespace stoker::sidecar
