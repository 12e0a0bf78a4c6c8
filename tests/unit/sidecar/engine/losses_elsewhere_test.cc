// Compares importance on several nodes whose sidecars exchange losses with importance on one node
// that has all ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/sampling/loss_code.h"
#include "sidecar/engine/contracts.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/begin_of.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kRanks = 6;
constexpr std::uint64_t kFullEpochs = 2;
constexpr std::uint64_t kEpochs = 6;

// Totals of the requests in the job's selective epochs.
struct Requests {
    std::uint64_t important = 0;  // never substituted: each reads the cache or the origin
    double loss = 0;              // sum over all draws
};

// One job whose ranks are dealt to `nodes` nodes.
class SpreadJob {
public:
    SpreadJob(std::uint32_t samples, std::uint32_t nodes, bool tell, std::uint64_t seed)
        : losses_(samples),
          seed_(seed) {
        Prng prng{seed};
        for (float& loss : losses_) {
            const double bell = prng.unit() + prng.unit() + prng.unit() + prng.unit() - 2;
            loss = static_cast<float>(std::exp(2 * bell));
        }
        for (std::uint32_t node = 0; node < nodes; ++node) {
            nodes_.push_back(std::make_unique<Node>(samples));
            nodes_.back()->service.set_on_losses(
                [this, node, tell](const auto& job, auto epoch, auto ids, auto values) {
                    if (tell) {
                        pass_on(node, job, epoch, ids, values);
                    }
                });
        }
    }

    Requests run() {
        for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
            for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
                begin(rank, epoch);
            }
            read(epoch);
        }
        return requests_;
    }

private:
    struct Node {
        explicit Node(std::uint32_t samples)
            : contracts(samples, 100),
              service(test::kEmptyNode, samples, contracts) {}

        Contracts contracts;
        SamplerService service;
    };

    SamplerService& service_of(std::uint32_t rank) { return nodes_[rank % nodes_.size()]->service; }

    void begin(std::uint32_t rank, std::uint64_t epoch) {
        local::Begin message = test::begin_of("importance", "uid/job", epoch);
        message.rank = rank;
        message.world_size = kRanks;
        message.seed = seed_;
        message.parameters = {
            {"warmupEpochs", static_cast<double>(kFullEpochs)},
            {"reuseFactor", 1000},
            {"substitute", 0}};
        ASSERT_TRUE(service_of(rank).begin(StreamId{rank + 1}, message, {}).has_value());
    }

    void read(std::uint64_t epoch) {
        for (bool has_more = true; has_more;) {
            has_more = false;
            for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
                SamplerService& service = service_of(rank);
                const auto drawn = service.draw(StreamId{rank + 1}, {epoch, 64}).value();
                std::vector<SampleIndex> served(drawn.served.begin(), drawn.served.end());
                service.on_read(StreamId{rank + 1}, served);
                count(epoch, drawn);
                report(service, StreamId{rank + 1}, epoch, drawn.served);
                has_more = has_more || !drawn.ended;
            }
        }
    }

    void count(std::uint64_t epoch, const local::Drawn& drawn) {
        for (std::size_t i = 0; epoch >= kFullEpochs && i < drawn.served.size(); ++i) {
            const auto kind = drawn.kinds[i] & ~local::kKindOnNode;
            requests_.important +=
                kind == static_cast<std::uint8_t>(local::DrawKind::kImportant) ? 1 : 0;
            requests_.loss += static_cast<double>(losses_[drawn.served[i]]);
        }
    }

    void report(
        SamplerService& service,
        StreamId stream,
        std::uint64_t epoch,
        const std::vector<std::uint64_t>& ids) {
        local::Losses losses{epoch, ids, {}};
        for (const std::uint64_t id : ids) {
            losses.losses.push_back(losses_[id] / static_cast<float>(1 + epoch));
        }
        service.on_losses(stream, losses);
    }

    void pass_on(
        std::uint32_t from,
        const std::string& job,
        std::uint64_t epoch,
        std::span<const SampleIndex> ids,
        std::span<const float> values) {
        std::vector<float> received;
        for (const float value : values) {
            received.push_back(LossCode::loss_of(LossCode::code_of(value)));
        }
        for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
            if (node != from) {
                nodes_[node]->service.on_losses_elsewhere(job, epoch, ids, received);
            }
        }
    }

    std::vector<float> losses_;
    std::uint64_t seed_;
    std::vector<std::unique_ptr<Node>> nodes_;
    Requests requests_;
};

double ratio(double one, double other) {
    return one / other - 1;
}

TEST(LossesElsewhere, ImportanceOverThreeNodesEqualsOneNode) {
    for (const std::uint32_t samples : {3'000U, 20'000U}) {
        const std::uint64_t seed = test::seed() + samples;
        const Requests one = SpreadJob{samples, 1, true, seed}.run();
        const Requests three = SpreadJob{samples, 3, true, seed}.run();
        const Requests silent = SpreadJob{samples, 3, false, seed}.run();
        const auto requests = [&one](const Requests& other) {
            return ratio(static_cast<double>(other.important), static_cast<double>(one.important));
        };
        EXPECT_LT(std::abs(requests(three)), .03) << requests(three);
        EXPECT_LT(std::abs(ratio(three.loss, one.loss)), .03) << ratio(three.loss, one.loss);
        EXPECT_GT(requests(silent), .05) << "samples without a loss are never substituted";
    }
}

}  // namespace
}  // namespace stoker::sidecar
