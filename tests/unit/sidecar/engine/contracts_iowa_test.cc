// Importance sampling of family Iowa through SamplerService: effects of a job's reports and of the
// origin's load time.
#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "sidecar/engine/contracts.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 400;

// Runs an epoch of family Iowa for each of `values`, passed as parameter `name`. Returns the
// samples that the last epoch serves.
std::set<std::uint64_t> last_epoch(
    Contracts& contracts,
    const std::string& name,
    std::initializer_list<double> values,
    float (*loss_of)(std::uint64_t) = [](std::uint64_t /*id*/) { return 1.0F; }) {
    SamplerService service{test::kEmptyNode, kCount, contracts};
    std::set<std::uint64_t> served;
    std::uint64_t epoch = 0;
    for (const double value : values) {
        local::Begin begin;
        begin.contract = "importance";
        begin.job = "j";
        begin.epoch = epoch;
        begin.seed = 3;
        begin.batch = 20;
        begin.parameters = {{"family", 1}, {"outRate", 0.2}, {"recallAfter", 1}, {name, value}};
        if (name != "accuracy") {
            begin.parameters.push_back({"accuracy", 0.5 + 0.1 * static_cast<double>(epoch)});
        }
        EXPECT_TRUE(service.begin(StreamId{1}, begin, {}).has_value());
        served.clear();
        for (bool ended = false; !ended;) {
            const auto drawn = service.draw(StreamId{1}, {epoch, 50}).value();
            std::vector<float> losses(drawn.served.size());
            std::ranges::transform(drawn.served, losses.begin(), loss_of);
            service.on_losses(StreamId{1}, {epoch, drawn.served, losses});
            served.insert(drawn.served.begin(), drawn.served.end());
            ended = drawn.ended;
        }
        ++epoch;
    }
    return served;
}

std::size_t waiting_after(std::initializer_list<double> accuracies) {
    Contracts contracts{kCount, 100};
    return kCount - last_epoch(contracts, "accuracy", accuracies).size();
}

TEST(Contracts, RecallsNoSampleWhileTheAccuracyGrows) {
    const std::size_t growing = waiting_after({0.1, 0.2, 0.4, 0.6, 0.8, 0.9});
    const std::size_t stagnating = waiting_after({0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
    EXPECT_GT(growing, 0U);
    EXPECT_LT(stagnating, growing);
}

TEST(Contracts, IoBoundIowaJobLeavesOutLargeSamples) {
    const auto large_left = [](double waiting) {
        Contracts contracts{
            kCount, 100, [](SampleIndex sample) { return Bytes{sample % 2 == 0 ? 100U : 900U}; }};
        const auto served = last_epoch(contracts, "waiting", {waiting, waiting});
        EXPECT_LT(served.size(), kCount);
        const auto small = std::ranges::count_if(served, [](auto id) { return id % 2 == 0; });
        return small == kCount / 2;  // no small sample is left out
    };
    EXPECT_TRUE(large_left(0.5));
    EXPECT_FALSE(large_left(0.01));
}

// At an origin whose latency outweighs every transfer, a large sample costs what a small one does.
TEST(Contracts, SizesDoNotCountIfTheLatencyOutweighsThem) {
    const auto small_left_out = [](Duration latency) {
        Contracts contracts{
            kCount, 100, [](SampleIndex sample) { return Bytes{sample % 2 == 0 ? 100U : 900U}; }};
        for (std::uint64_t i = 0; i < 200; ++i) {
            const std::uint64_t bytes = i % 2 == 0 ? 100 : 900;
            contracts.note_load(Bytes{bytes}, latency + Duration{1000 * bytes});
            contracts.note_load(Bytes{bytes}, Duration::zero());
        }
        // Small samples have smaller losses, so loss and size disagree; one sample is very hard.
        const auto served = last_epoch(contracts, "waiting", {0.5, 0.5}, [](std::uint64_t id) {
            return id == 0 ? 5.0F : id % 2 == 0 ? 0.9F : 1.0F;
        });
        return std::ranges::count_if(served, [](auto id) { return id % 2 == 0; }) < kCount / 2;
    };
    EXPECT_FALSE(small_left_out(Duration::zero()));
    EXPECT_TRUE(small_left_out(std::chrono::seconds{1}));
}

}  // namespace
}  // namespace stoker::sidecar
