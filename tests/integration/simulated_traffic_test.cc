// The simulator's model of a node beside the sidecar's own parts: desk, samplers, policy and fetch
// engine, with an origin that answers at once and without threads, so that both are the same in
// every run. `make traffic` does it with real sidecars.
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/fetch_engine.h"
#include "sidecar/service/contracts.h"
#include "sidecar/service/sampling_desk.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/simulator.h"
#include "tests/support/dataset.h"

namespace stoker {
namespace {

using domain::SampleIndex;
using sidecar::ConnectionId;
using sidecar::Effects;
using sidecar::StreamId;

constexpr std::uint64_t kSamples = 5000;
constexpr std::uint32_t kBatch = 64;
constexpr std::size_t kAhead = 2;
constexpr std::uint32_t kEpochs = 9;
constexpr std::uint32_t kDiscard = 3;
constexpr double kDecay = 0.1;  // of the losses: without it IOWA leaves nothing out
constexpr double kWaitingRate = 1e7;
constexpr double kShare = 0.2;
constexpr double kWindowShare = 0.2;  // of the cache
constexpr StreamId kStream{1};
constexpr ConnectionId kConnection{1};

struct Sizes {
    std::vector<std::uint64_t> bytes;
    std::uint64_t total = 0;
    Bytes grant{};
    Bytes window{};
};

Sizes sizes_of(const domain::ManifestView& manifest) {
    Sizes sizes;
    std::uint64_t records = 0;
    for (std::uint64_t sample = 0; sample < manifest.sample_count(); ++sample) {
        sizes.bytes.push_back(manifest.size_bytes(domain::SampleId{sample}));
        sizes.total += sizes.bytes.back();
        records += domain::record_bytes(sizes.bytes.back());
    }
    sizes.grant = Bytes{static_cast<std::uint64_t>(kShare * static_cast<double>(records))};
    sizes.window = Bytes{static_cast<std::uint64_t>(
        static_cast<double>(sizes.grant.count()) * kWindowShare / (1 - kWindowShare))};
    return sizes;
}

sidecar::EngineLimits limits_of(const Sizes& sizes) {
    sidecar::EngineLimits limits;
    limits.window = sizes.window;
    return limits;
}

sidecar::SharedImportance::SizeOf size_of(const Sizes& sizes, bool equal) {
    if (equal) {
        return {};
    }
    return [&sizes](SampleIndex sample) { return Bytes{sizes.bytes[sample]}; };
}

// What Leader does with its parts for one trainer that always waits, and this trainer.
class SidecarParts {
public:
    SidecarParts(
        const domain::ManifestView& manifest, const Sizes& sizes, bool equal, local::Begin begin)
        : sizes_(sizes),
          begin_(std::move(begin)),
          engine_(manifest, limits_of(sizes), {sizes.grant, std::nullopt}),
          contracts_(kSamples, kSamples, size_of(sizes, equal)),
          desk_(kSamples, contracts_),
          losses_(kSamples, {.decay = kDecay}, 11, 12) {
        engine_.on_connect(kConnection, kStream);
        apply(engine_.open(now_));
    }

    void read_epoch(std::uint64_t epoch) {
        losses_.begin_epoch(epoch);
        begin_.epoch = epoch;
        ASSERT_TRUE(desk_.begin(kStream, begin_, {}).has_value());
        if (auto eviction = contracts_.importance().new_eviction()) {
            engine_.set_eviction(std::move(eviction));
        }
        plan_ahead();
        for (bool ended = false; !ended || !drawn_.empty();) {
            while (!ended && drawn_.size() <= kAhead) {
                ended = draw();
            }
            if (!drawn_.empty()) {
                read(epoch, drawn_.front());
                drawn_.pop_front();
            }
        }
    }

    [[nodiscard]] std::uint64_t origin_bytes() const { return origin_bytes_; }

private:
    // True: it was the epoch's last.
    bool draw() {
        const auto drawn = desk_.draw(kStream, {begin_.epoch, kBatch});
        EXPECT_TRUE(drawn.has_value());
        plan_ahead();
        if (!drawn || drawn->served.empty()) {
            return true;
        }
        drawn_.emplace_back(drawn->served.begin(), drawn->served.end());
        return drawn->ended;
    }

    void plan_ahead() {
        if (auto samples = desk_.new_plan(kStream)) {
            auto plan = sidecar::StreamPlan::make(begin_.epoch, *std::move(samples), 0, kSamples);
            ASSERT_TRUE(plan.has_value());
            apply(engine_.on_plan(kConnection, *std::move(plan), now_));
        }
    }

    void read(std::uint64_t epoch, const std::vector<SampleIndex>& samples) {
        std::vector<SampleIndex> missing;
        for (const SampleIndex sample : samples) {
            if (engine_.sample(sample).state != sidecar::SampleState::kStored) {
                missing.push_back(sample);
            }
        }
        if (!missing.empty()) {
            apply(engine_.on_fetch(kConnection, ++requests_, missing, now_));
        }
        desk_.on_read(kStream, samples);
        apply(engine_.on_consumed(kConnection, epoch, samples, now_));
        local::Losses losses;
        losses.epoch = epoch;
        losses.samples.assign(samples.begin(), samples.end());
        for (const SampleIndex sample : samples) {
            losses.losses.push_back(losses_.visit(sample));
        }
        desk_.on_losses(kStream, losses);
    }

    // The origin and the disk answer before anything else happens.
    void apply(const Effects& first) {
        std::deque<sidecar::StartFetch> fetches;
        const auto take = [this, &fetches](const Effects& effects) {
            for (const SampleIndex sample : effects.drops) {
                desk_.on_gone(sample);
            }
            fetches.insert(fetches.end(), effects.fetches.begin(), effects.fetches.end());
            EXPECT_TRUE(effects.verifies.empty());
        };
        take(first);
        for (; !fetches.empty(); fetches.pop_front()) {
            const sidecar::StartFetch fetch = fetches.front();
            origin_bytes_ += sizes_.bytes[fetch.sample];
            desk_.on_stored(fetch.sample, fetch.segment_class == domain::SegmentClass::kResident);
            take(engine_.on_stored(fetch.sample, now_));
        }
    }

    const Sizes& sizes_;
    local::Begin begin_;
    const TimePoint now_{};
    sidecar::FetchEngine engine_;
    sidecar::Contracts contracts_;
    sidecar::SamplingDesk desk_;
    simulate::Losses losses_;
    std::deque<std::vector<SampleIndex>> drawn_;  // and not read
    std::uint64_t origin_bytes_ = 0;
    std::uint64_t requests_ = 0;
};

struct Case {
    const char* name;
    double family;  // of importance
    double sigma;   // of the logarithm of the sizes
};

class SimulatedTraffic : public testing::TestWithParam<Case> {
protected:
    // Data sets an epoch.
    static double of_the_parts(const test::Dataset& dataset, const Sizes& sizes) {
        local::Begin begin;
        begin.seed = 1;
        begin.batch = kBatch;
        begin.contract = "importance";
        begin.job = "train";
        begin.parameters = {{"family", GetParam().family}, {"warmupEpochs", 2}};
        SidecarParts parts{dataset.manifest(), sizes, GetParam().sigma == 0, begin};
        std::uint64_t discarded = 0;
        for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
            discarded = epoch == kDiscard ? parts.origin_bytes() : discarded;
            parts.read_epoch(epoch);
        }
        return static_cast<double>(parts.origin_bytes() - discarded) /
               (static_cast<double>(sizes.total) * (kEpochs - kDiscard));
    }

    static double of_the_simulator(const Sizes& sizes) {
        simulate::Scenario scenario;
        scenario.dataset.sizes = sizes.bytes;
        scenario.cache.bytes = sizes.grant + sizes.window;
        scenario.cache.window_share = kWindowShare;
        scenario.epochs = kEpochs;
        scenario.batch = kBatch;
        scenario.ahead = kAhead;
        scenario.samples_per_second = kWaitingRate;
        scenario.jobs[0].contract = "importance";
        scenario.jobs[0].parameters = {
            {"family", GetParam().family}, {"warmup", 2}, {"loss-decay", kDecay}};
        const auto outcome = simulate::run(scenario);
        return simulate::means_of(outcome.value(), 0, kDiscard).origin_bytes;
    }
};

TEST_P(SimulatedTraffic, IsThatOfTheSidecarsParts) {
    Prng luck{5};
    std::vector<std::uint64_t> bytes;
    for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
        bytes.push_back(
            1 +
            static_cast<std::uint64_t>(4000 * std::exp(GetParam().sigma * simulate::normal(luck))));
    }
    const test::Dataset dataset{bytes};
    const Sizes sizes = sizes_of(dataset.manifest());
    const double simulated = of_the_simulator(sizes);
    const double sidecars = of_the_parts(dataset, sizes);
    std::printf("simulated %.4f, the sidecar's parts %.4f\n", simulated, sidecars);
    EXPECT_NEAR(simulated, sidecars, 0.02 * sidecars);
}

INSTANTIATE_TEST_SUITE_P(
    OfImportance,
    SimulatedTraffic,
    testing::Values(
        Case{"Icache", 0, 0},
        Case{"IcacheOfUnequalSizes", 0, 0.6},
        Case{"Iowa", 1, 0},
        Case{"IowaOfUnequalSizes", 1, 0.6}),
    [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace stoker
