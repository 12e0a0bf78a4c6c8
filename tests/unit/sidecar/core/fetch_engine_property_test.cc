// The engine in a toy world (engine_world.h): thousands of random runs; every guarantee is checked
// after every event. Each of these bugs was put into the engine once, and was found within five
// seeds:
//   a window sample is dropped although only one of its two readers has read it · a held sample is
//   dropped, or evicted · the sum of the grant's used bytes omits fetches in flight · one record
//   more is stored than the grant, or the window, allows · a sample is not fetched again after an
//   eviction, or after a failed prefetch · a request is never answered while the window is full ·
//   a store failure forgets the waiting clients · a failed probe never closes the circuit breaker ·
//   a shrinking grant overlooks residents in flight · a sample stays needed after its stream has
//   ended, or after its plan was replaced · a sample stays held after its connection has ended ·
//   prefetch ignores the memory limit · one read of a sample that the plan contains twice counts
//   for both · a damaged sample is answered as ready · a fetch is started twice (the sample table's
//   own check fails).
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/fetch_engine.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/engine_world.h"

namespace stoker::test {
namespace {

using domain::SegmentClass;
using sidecar::Effects;
using sidecar::FetchEngine;
using sidecar::SampleIndex;

// A policy that chooses random victims among those that may go.
class Whimsical final : public sidecar::EvictionPolicy {
public:
    explicit Whimsical(std::uint64_t seed)
        : prng_(seed) {}

    void on_resident(SampleIndex sample, Bytes bytes) override { residents_[sample] = bytes; }

    void on_gone(SampleIndex sample) override { residents_.erase(sample); }

    void on_read(SampleIndex /*sample*/, bool /*hit*/) override {}

    bool make_room(
        SampleIndex /*incoming*/,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override {
        const bool made = prng_.below(3) > 0 && choose(needed, &may_go, victims) >= needed;
        if (!made) {
            victims.clear();
        }
        return made;
    }

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override {
        choose(excess, nullptr, victims);
    }

private:
    Bytes choose(Bytes needed, const MayGo* may_go, std::vector<SampleIndex>& victims) {
        std::vector<SampleIndex> order;
        for (const auto& [sample, bytes] : residents_) {
            order.push_back(sample);
        }
        std::shuffle(order.begin(), order.end(), prng_);
        Bytes freed;
        for (const SampleIndex sample : order) {
            if (freed < needed && (may_go == nullptr || (*may_go)(sample))) {
                victims.push_back(sample);
                freed += residents_.at(sample);
            }
        }
        return freed;
    }

    Prng prng_;
    std::map<SampleIndex, Bytes> residents_;
};

std::unique_ptr<sidecar::EvictionPolicy> any_policy(Prng& prng) {
    switch (prng.below(5)) {
        case 0:
            return std::make_unique<sidecar::NeverEvict>();
        case 1:
            return std::make_unique<sidecar::Lru>();
        case 2:
            return std::make_unique<sidecar::Lfu>();
        case 3:
            return std::make_unique<Whimsical>(prng());
        default:
            return nullptr;
    }
}

// Calls `live` with the seed of each world in turn, until one fails.
void in_random_worlds(int count, const std::function<void(std::uint64_t)>& live) {
    Prng seeds{seed()};
    for (int world = 0; world < count && !testing::Test::HasFailure(); ++world) {
        const std::uint64_t world_seed = seeds();
        SCOPED_TRACE(testing::Message() << "world " << world_seed);
        live(world_seed);
    }
}

TEST(FetchEngineProperty, KeepsItsGuaranteesInRandomWorlds) {
    in_random_worlds(2500, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        EngineWorld world{own(), any_policy(own)};
        for (int event = 0; event < 300 && !testing::Test::HasFailure(); ++event) {
            world.step();
        }
        world.heal();
        world.settle();
        world.end();
    });
}

TEST(FetchEngineProperty, KeepsItsGuaranteesWithGuests) {
    in_random_worlds(2500, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        EngineWorld world{own(), any_policy(own)};
        world.invite_guests();
        for (int event = 0; event < 300 && !testing::Test::HasFailure(); ++event) {
            world.step();
        }
        world.heal();
        world.settle();
        world.end();
    });
}

TEST(FetchEngineProperty, KeepsItsGuaranteesWithChunks) {
    in_random_worlds(2500, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        EngineWorld world{own(), any_policy(own)};
        world.lay_in_chunks();
        if (own.below(3) == 0) {
            world.invite_guests();
        }
        if (own.below(3) == 0) {
            world.join_groups();
        }
        for (int event = 0; event < 300 && !testing::Test::HasFailure(); ++event) {
            world.step();
        }
        world.heal();
        world.settle();
        world.end();
    });
}

// One trainer that reads in batches: hits at once, misses by demand; nothing fails. Fetches finish
// in random order.
class Epochs {
public:
    Epochs(
        const domain::ManifestView& manifest,
        sidecar::EngineLimits limits,
        Bytes grant,
        Prng& prng,
        std::unique_ptr<sidecar::EvictionPolicy> eviction = nullptr)
        : manifest_(manifest),
          engine_(manifest, limits, {grant, std::nullopt}, std::move(eviction)),
          prng_(prng) {
        engine_.open(kNow);
        engine_.on_connect(kTrainer, sidecar::StreamId{1});
    }

    // Returns the number of fetches in the epoch. Its plan includes `ahead` samples of the next
    // one.
    std::uint64_t run(std::uint64_t epoch, std::size_t batch, std::size_t ahead = 0) {
        const std::uint64_t before = engine_.counters().fetches;
        const auto order = plan(epoch, ahead);
        for (std::size_t begin = 0; begin < order.size(); begin += batch) {
            const std::vector<SampleIndex> wanted(
                order.begin() + static_cast<std::ptrdiff_t>(begin),
                order.begin() + static_cast<std::ptrdiff_t>(std::min(begin + batch, order.size())));
            read(wanted);
            apply(engine_.on_consumed(kTrainer, epoch, wanted, kNow, &counts_));
        }
        while (!in_flight_.empty()) {
            arrive();
        }
        return engine_.counters().fetches - before;
    }

    // Sends no demands: waits for each sample in plan order until it is prefetched.
    void run_patiently(std::uint64_t epoch) {
        for (const SampleIndex sample : plan(epoch)) {
            while (engine_.sample(sample).state != sidecar::SampleState::kStored) {
                ASSERT_FALSE(in_flight_.empty()) << "nobody fetches sample " << sample;
                arrive();
            }
            apply(engine_.on_consumed(kTrainer, epoch, {sample}, kNow));
        }
    }

    [[nodiscard]] const FetchEngine& engine() const { return engine_; }

    [[nodiscard]] const sidecar::ReadCounts& counts() const { return counts_; }

private:
    static constexpr TimePoint kNow{std::chrono::seconds{5}};
    static constexpr sidecar::ConnectionId kTrainer{1};

    std::vector<SampleIndex> plan(std::uint64_t epoch, std::size_t ahead = 0) {
        const auto order = next_.empty() ? any_order() : next_;
        next_ = any_order();
        auto all = order;
        all.insert(all.end(), next_.begin(), next_.begin() + static_cast<std::ptrdiff_t>(ahead));
        apply(engine_.on_plan(
            kTrainer,
            sidecar::StreamPlan::make(epoch, all, 0, manifest_.sample_count(), ahead).value(),
            kNow));
        return order;
    }

    std::vector<SampleIndex> any_order() {
        std::vector<SampleIndex> order(manifest_.sample_count());
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), prng_);
        return order;
    }

    void read(const std::vector<SampleIndex>& wanted) {
        std::vector<SampleIndex> missing;
        std::ranges::copy_if(wanted, std::back_inserter(missing), [this](SampleIndex sample) {
            return engine_.sample(sample).state != sidecar::SampleState::kStored;
        });
        if (missing.empty()) {
            return;
        }
        answered_ = false;
        apply(engine_.on_fetch(kTrainer, ++request_, missing, kNow));
        while (!answered_ && !in_flight_.empty()) {
            arrive();
        }
        ASSERT_TRUE(answered_);
    }

    void arrive() {
        const auto chosen = prng_.below(in_flight_.size());
        const SampleIndex sample = in_flight_[chosen];
        in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(chosen));
        apply(engine_.on_stored(sample, kNow));
    }

    void apply(const Effects& effects) {
        for (const auto& fetch : effects.fetches) {
            in_flight_.push_back(fetch.sample);
        }
        for (const auto& reply : effects.replies) {
            answered_ = true;
            for (const auto outcome : reply.outcomes) {
                EXPECT_EQ(outcome, sidecar::FetchOutcome::kReady);
            }
        }
    }

    const domain::ManifestView& manifest_;
    FetchEngine engine_;
    Prng& prng_;
    std::vector<SampleIndex> next_;  // order of the next epoch
    std::vector<SampleIndex> in_flight_;
    sidecar::ReadCounts counts_;
    std::uint64_t request_ = 0;
    bool answered_ = false;
};

// A dataset with a grant for part of it, read in batches by one trainer.
struct Partial {
    explicit Partial(Prng& own)
        : dataset(Dataset::random(1 + own.below(200), 2000, own())),
          batch(1 + own.below(8)) {
        const auto& manifest = dataset.manifest();
        std::uint64_t records = 0;
        for (std::uint64_t id = 0; id < manifest.sample_count(); ++id) {
            records += domain::record_bytes(manifest.size_bytes(domain::SampleId{id}));
        }
        // Room for the batch being read, the one before it, and one in flight.
        limits.window = Bytes{(3 * batch + 1 + own.below(20)) * domain::record_bytes(2000)};
        limits.max_in_flight = static_cast<std::uint32_t>(1 + own.below(16));
        grant = Bytes{own.below(records + 1)};
    }

    Dataset dataset;
    std::size_t batch;
    sidecar::EngineLimits limits;
    Bytes grant;
};

TEST(FetchEngineProperty, EachEpochFetchesExactlyTheNonResidents) {
    in_random_worlds(300, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        const Partial part{own};
        const std::uint64_t samples = part.dataset.manifest().sample_count();
        Epochs epochs{part.dataset.manifest(), part.limits, part.grant, own};
        EXPECT_EQ(epochs.run(1, part.batch), samples);
        const std::uint64_t resident = epochs.engine().account().resident_samples;
        for (std::uint64_t epoch = 2; epoch <= 3; ++epoch) {
            EXPECT_EQ(epochs.run(epoch, part.batch), samples - resident);
        }
        EXPECT_EQ(epochs.engine().account().resident_samples, resident);
        EXPECT_EQ(epochs.engine().counters().evicted_window_samples, 0U);
    });
}

// Prefetching for the next epoch adds no fetches: each fetched sample is read, and a sample that is
// kept across the epoch boundary saves a fetch.
TEST(FetchEngineProperty, PrefetchAcrossEpochsAddsNoFetches) {
    in_random_worlds(300, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        const Partial part{own};
        const std::uint64_t samples = part.dataset.manifest().sample_count();
        Epochs epochs{part.dataset.manifest(), part.limits, part.grant, own};
        std::uint64_t fetches = 0;
        for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
            fetches += epochs.run(epoch, part.batch, epoch < 3 ? own.below(samples + 1) : 0);
        }
        const std::uint64_t resident = epochs.engine().account().resident_samples;
        EXPECT_LE(fetches, samples + 2 * (samples - resident));
        EXPECT_EQ(fetches, epochs.counts().fetched_samples);
        EXPECT_EQ(epochs.counts().hit_samples, 3 * samples - fetches);
    });
}

// With room for a share w of the N samples, LRU fetches (1-w)N(1-ln(1-w)) samples per epoch,
// however far ahead it prefetches.
TEST(FetchEngineProperty, LruEpochHasTheExpectedNumberOfFetches) {
    constexpr std::uint64_t kSamples = 5000;
    Prng prng{seed()};
    const Dataset dataset{std::vector<std::uint64_t>(kSamples, 100)};
    const Bytes record{domain::record_bytes(100)};
    for (const double w : {0.3, 0.6}) {
        sidecar::EngineLimits limits;
        limits.window = record * 64;
        const Bytes grant{record * static_cast<std::uint64_t>(w * kSamples)};
        Epochs epochs{dataset.manifest(), limits, grant, prng, std::make_unique<sidecar::Lru>()};
        epochs.run(1, 16);
        epochs.run(2, 16);
        std::uint64_t fetched = 0;
        for (std::uint64_t epoch = 3; epoch <= 6; ++epoch) {
            fetched += epochs.run(epoch, 16);
        }
        const double expected = 1 - (w + (1 - w) * std::log(1 - w));
        EXPECT_NEAR(static_cast<double>(fetched) / (4 * kSamples), expected, 0.02) << "w = " << w;
        EXPECT_LE(epochs.engine().account().resident, grant);
    }
}

TEST(FetchEngineProperty, PrefetchAloneServesAWholePlan) {
    in_random_worlds(300, [](std::uint64_t world_seed) {
        Prng own{world_seed};
        const Dataset dataset = Dataset::random(1 + own.below(200), 2000, own());
        sidecar::EngineLimits limits;
        limits.window = Bytes{domain::record_bytes(2000) + own.below(20000)};
        limits.memory = Bytes{2000 + own.below(8000)};
        limits.max_in_flight = static_cast<std::uint32_t>(1 + own.below(16));
        Epochs epochs{dataset.manifest(), limits, Bytes{own.below(300000)}, own};
        epochs.run_patiently(1);
        epochs.run_patiently(2);
        EXPECT_EQ(epochs.engine().counters().demanded_samples, 0U);
        EXPECT_EQ(epochs.engine().counters().evicted_window_samples, 0U);
    });
}

}  // namespace
}  // namespace stoker::test
