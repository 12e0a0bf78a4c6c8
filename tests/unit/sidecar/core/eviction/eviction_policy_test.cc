// The guarantees of every policy under random calls (audited_policy.h checks each call), and the
// hit ratios of shuffled epochs.
#include "sidecar/core/eviction/eviction_policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/eviction/audited_policy.h"
#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::EvictionPolicy;
using sidecar::Lfu;
using sidecar::Lru;
using sidecar::NeverEvict;
using sidecar::ReplicateEviction;
using sidecar::SampleIndex;

// A cache of `capacity` equal samples that a job reads in a new random order every epoch; returns
// the share of hits after the first epoch.
double hit_ratio(
    EvictionPolicy& policy, std::uint64_t samples, std::uint64_t capacity, Prng& prng) {
    std::vector<SampleIndex> order(samples);
    std::iota(order.begin(), order.end(), 0U);
    std::vector<bool> resident(samples, false);
    std::uint64_t used = 0;
    std::uint64_t hits = 0;
    constexpr int kEpochs = 6;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        std::shuffle(order.begin(), order.end(), prng);
        for (const SampleIndex sample : order) {
            const bool hit = resident[sample];
            hits += static_cast<std::uint64_t>(hit && epoch > 0);
            if (!hit && used == capacity) {
                for (const SampleIndex victim : make_room(policy, sample, Bytes{1})) {
                    policy.on_gone(victim);
                    resident[victim] = false;
                    --used;
                }
            }
            if (!hit && used < capacity) {
                policy.on_resident(sample, Bytes{1});
                resident[sample] = true;
                ++used;
            }
            policy.on_read(sample, hit);
        }
    }
    return static_cast<double>(hits) / static_cast<double>(samples * (kEpochs - 1));
}

TEST(EvictionPolicy, ShuffledEpochsHaveTheExpectedHitRatios) {
    Prng prng{seed()};
    constexpr std::uint64_t kSamples = 20000;
    for (const double w : {0.2, 0.5, 0.75}) {
        const auto capacity = static_cast<std::uint64_t>(w * kSamples);
        Lru lru;
        NeverEvict never;
        Lfu lfu;
        EXPECT_NEAR(hit_ratio(lru, kSamples, capacity, prng), w + (1 - w) * std::log(1 - w), 0.005);
        EXPECT_DOUBLE_EQ(hit_ratio(never, kSamples, capacity, prng), w);
        EXPECT_DOUBLE_EQ(hit_ratio(lfu, kSamples, capacity, prng), w);
    }
}

// Random calls to a policy, checked by AuditedPolicy.
void live(std::unique_ptr<EvictionPolicy> inner, Prng& prng) {
    AuditedPolicy policy{std::move(inner)};
    const std::uint64_t count = 1 + prng.below(200);
    for (int event = 0; event < 400 && !testing::Test::HasFailure(); ++event) {
        const auto sample = static_cast<SampleIndex>(prng.below(count));
        const bool resident = policy.residents().contains(sample);
        const std::uint64_t dice = prng.below(100);
        std::vector<SampleIndex> victims;
        if (dice < 30) {
            policy.on_read(sample, resident && prng.below(2) == 0);
        } else if (dice < 35) {
            policy.shrink(Bytes{prng.below(3000)}, victims);
        } else if (dice < 70 && !resident) {
            std::set<SampleIndex> pinned;
            for (std::uint64_t i = prng.below(count); i > 0; --i) {
                pinned.insert(static_cast<SampleIndex>(prng.below(count)));
            }
            policy.make_room(sample, Bytes{1 + prng.below(2000)}, AllBut{pinned}, victims);
        } else if (!resident) {
            policy.on_resident(sample, Bytes{1 + prng.below(500)});
        } else {
            policy.on_gone(sample);
        }
        std::ranges::for_each(victims, [&policy](SampleIndex victim) { policy.on_gone(victim); });
    }
}

TEST(EvictionPolicy, EveryPolicyKeepsItsContractUnderRandomCalls) {
    Prng seeds{seed()};
    for (int life = 0; life < 500 && !testing::Test::HasFailure(); ++life) {
        const std::uint64_t life_seed = seeds();
        SCOPED_TRACE(testing::Message() << "life " << life_seed);
        Prng prng{life_seed};
        live(std::make_unique<NeverEvict>(), prng);
        live(std::make_unique<Lru>(), prng);
        live(std::make_unique<Lfu>(), prng);
        live(std::make_unique<ReplicateEviction>(), prng);
    }
}

}  // namespace
}  // namespace stoker::test
