// Fetches for which no trainer waits: a grant tells the sidecar to fill the cache.
#include <gmock/gmock.h>

#include "common/base/prng.h"
#include "sidecar/core/placement.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class FetchEngineFill : public FetchEngineTest {
protected:
    // A grant that tells the engine to fill. `bytes_per_second`: limit of the fill's rate; 0: none.
    Effects order(Bytes grant, std::uint64_t bytes_per_second = 0, TimePoint now = kNow) {
        return engine->on_grant({grant, std::nullopt, 0, bytes_per_second}, now);
    }

    // Stores each sample that the engine fetches until it starts no more fetches; returns the
    // samples.
    std::vector<SampleIndex> run(Effects effects) {
        std::vector<SampleIndex> fetched;
        while (!effects.fetches.empty()) {
            const StartFetch first = effects.fetches.front();
            fetched.push_back(first.sample);
            Effects more = stored(first.sample);
            effects.fetches.erase(effects.fetches.begin());
            effects.fetches.insert(effects.fetches.end(), more.fetches.begin(), more.fetches.end());
        }
        return fetched;
    }

    // The placement of a group of two nodes, for the first of them.
    static std::shared_ptr<const Placement> join_group(const test::Dataset& of) {
        const std::vector<std::string> nodes{"a", "b"};
        return std::make_shared<Placement>(
            of.manifest(),
            [&of](SampleIndex sample) {
                return of.manifest().sample(domain::SampleId{sample}).key;
            },
            nodes,
            0);
    }

    // A reader asks for the sample, and the origin refuses it.
    void refuse(SampleIndex sample, const Error& error, TimePoint now = kNow) {
        engine->on_fetch(kTrainer, ++request, {sample}, now);
        engine->on_fetch_failed(sample, error, now);
    }

    FillState state() { return engine->fill_state(kNow).value(); }
};

TEST_F(FetchEngineFill, FetchesTheWholeDatasetInOrder) {
    make();
    EXPECT_EQ(engine->fill_state(kNow), std::nullopt);
    EXPECT_THAT(run(order(Bytes::unlimited())), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    EXPECT_EQ(state().own, (SampleSum{10, Bytes{10 * kPayload}}));
    EXPECT_EQ(state().stored, state().own);
    EXPECT_TRUE(state().over);
}

TEST_F(FetchEngineFill, FirstReadsOfItsSamplesAreHits) {
    make();
    run(order(Bytes::unlimited()));
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {0, 1, 2}, kNow, &counts);
    EXPECT_EQ(counts, (ReadCounts{3, Bytes{3 * kPayload}, 0, Bytes::zero()}));
}

TEST_F(FetchEngineFill, StopsWithTheOrder) {
    make();
    Effects effects = order(Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt}, kNow);
    EXPECT_EQ(engine->fill_state(kNow), std::nullopt);
    for (const StartFetch& fetch : effects.fetches) {
        EXPECT_THAT(stored(fetch.sample).fetches, IsEmpty());
    }
}

TEST_F(FetchEngineFill, SaysThatTheGrantIsFull) {
    make();
    EXPECT_THAT(run(order(kRecord * 4)), SizeIs(4));
    EXPECT_TRUE(state().over);
    EXPECT_EQ(state().stored.samples, 4U);
    EXPECT_THAT(run(order(kRecord * 6)), SizeIs(2)) << "a larger grant goes on";
}

TEST_F(FetchEngineFill, IsNotOverWhileItFetches) {
    make();
    Effects effects = order(kRecord * 4);
    EXPECT_THAT(effects.fetches, SizeIs(4));
    EXPECT_FALSE(state().over);
    run(std::move(effects));
    EXPECT_TRUE(state().over);
}

TEST_F(FetchEngineFill, IsOverWhileAJobFetchesIntoTheWindow) {
    make();
    run(order(kRecord * 4));
    EXPECT_THAT(fetch({9}).fetches, ElementsAre(window(9)));
    EXPECT_TRUE(state().over);
}

TEST_F(FetchEngineFill, IsNotOverWhileAJobHoldsWindowSamplesThatFitTheGrant) {
    make(Bytes::zero());
    EXPECT_THAT(fetch({0, 1}).fetches, ElementsAre(window(0), window(1)));
    stored(0);
    stored(1);
    EXPECT_THAT(run(order(Bytes::unlimited())), SizeIs(8));
    EXPECT_FALSE(state().over);
    fetch({});
    const EngineGrant next{Bytes::unlimited(), kNow + milliseconds{1}, 0, 0};
    EXPECT_THAT(run(engine->on_grant(next, kNow)), ElementsAre(0, 1));
    EXPECT_TRUE(state().over);
}

TEST_F(FetchEngineFill, IsOverIfAJobHoldsWindowSamplesThatDoNotFitTheGrant) {
    make(Bytes::zero());
    fetch({8, 9});
    stored(8);
    stored(9);
    EXPECT_THAT(run(order(kRecord * 8)), SizeIs(8));
    EXPECT_TRUE(state().over);
}

TEST_F(FetchEngineFill, EvictsNoResident) {
    make(kRecord * 4);
    plan({9, 8, 7, 6});
    for (const SampleIndex sample : {9, 8, 7, 6}) {
        stored(sample);
    }
    EXPECT_THAT(run(order(kRecord * 4)), IsEmpty());
}

TEST_F(FetchEngineFill, LeavesHalfOfTheSlotsToReaders) {
    make({.max_in_flight = 4}, Bytes::unlimited());
    EXPECT_THAT(order(Bytes::unlimited()).fetches, SizeIs(2));
    EXPECT_THAT(fetch({8, 9}).fetches, ElementsAre(resident(8), resident(9)));
}

TEST_F(FetchEngineFill, HasMostSlotsWithoutReaders) {
    make({.max_in_flight = 8}, Bytes::unlimited());
    EXPECT_THAT(order(Bytes::unlimited()).fetches, SizeIs(4));
    EXPECT_THAT(engine->on_disconnect(kTrainer, kNow).fetches, SizeIs(3));
}

TEST_F(FetchEngineFill, PeersAreNoReaders) {
    make({.max_in_flight = 8}, Bytes::unlimited());
    engine->on_disconnect(kTrainer, kNow);
    engine->on_connect(kWorker, std::nullopt, kPeerParty);
    EXPECT_THAT(order(Bytes::unlimited()).fetches, SizeIs(7));
}

TEST_F(FetchEngineFill, HasTheOnlySlot) {
    make({.max_in_flight = 1}, Bytes::unlimited());
    EXPECT_THAT(order(Bytes::unlimited()).fetches, ElementsAre(resident(0)));
}

TEST_F(FetchEngineFill, WaitsBehindDemands) {
    make({.max_in_flight = 2}, Bytes::unlimited());
    EXPECT_THAT(fetch({9, 8, 7}).fetches, SizeIs(2));
    EXPECT_THAT(order(Bytes::unlimited()).fetches, IsEmpty());
    EXPECT_THAT(stored(9).fetches, ElementsAre(resident(7)));
}

TEST_F(FetchEngineFill, CountsRefusedSamples) {
    make();
    Effects effects = order(Bytes::unlimited());
    engine->on_fetch_failed(0, kGone, kNow);
    effects.fetches.erase(effects.fetches.begin());
    run(std::move(effects));
    EXPECT_TRUE(state().over);
    EXPECT_EQ(state().refused, 1U);
    EXPECT_EQ(state().stored.samples, 9U);
    order(Bytes::unlimited());
    EXPECT_EQ(state().refused, 1U);
}

TEST_F(FetchEngineFill, CountsARefusedSampleOnce) {
    make();
    run(order(kRecord * 8));
    for (const TimePoint now : {kNow, kNow + Refusals::kFirst}) {
        refuse(8, kGone, now);
        refuse(9, {ErrorCode::kResourceExhausted, "too large"}, now);
        EXPECT_EQ(state().refused, 2U);
    }
}

TEST_F(FetchEngineFill, CountsNoRefusedSamplesOfOtherOwners) {
    make();
    const auto placement = join_group(dataset);
    engine->on_placement(placement, kNow);
    run(order(Bytes::unlimited()));
    for (SampleIndex sample = 0; sample < 10; ++sample) {
        if (!placement->is_own(sample)) {
            refuse(sample, kGone);
        }
    }
    EXPECT_EQ(engine->counters().origin_failures, 10 - placement->own_samples());
    EXPECT_EQ(state().refused, 0U);
}

TEST_F(FetchEngineFill, TriesAgainWhenTheOriginWasDown) {
    make({.max_in_flight = 2}, Bytes::unlimited());
    EXPECT_THAT(order(Bytes::unlimited()).fetches, ElementsAre(resident(0)));
    EXPECT_THAT(engine->on_fetch_failed(0, kDown, kNow).fetches, IsEmpty());
    EXPECT_TRUE(state().shut);
    EXPECT_FALSE(state().over);
    const TimePoint later = engine->next_deadline(kNow).value();
    EXPECT_THAT(engine->tick(later).fetches, ElementsAre(resident(0)));
}

TEST_F(FetchEngineFill, ExpiredGrantPauses) {
    make();
    engine->on_grant({Bytes::unlimited(), kNow, 0, 0}, kNow);
    EXPECT_TRUE(state().shut);
    EXPECT_FALSE(state().over);
    EXPECT_THAT(run(order(Bytes::unlimited())), SizeIs(10));
}

TEST_F(FetchEngineFill, FetchesOwnSamplesOnly) {
    make();
    const auto placement = join_group(dataset);
    engine->on_placement(placement, kNow);
    const std::vector<SampleIndex> fetched = run(order(Bytes::unlimited()));
    EXPECT_THAT(fetched, SizeIs(placement->own_samples()));
    for (const SampleIndex sample : fetched) {
        EXPECT_TRUE(placement->is_own(sample));
    }
    EXPECT_EQ(state().stored, state().own);
    EXPECT_EQ(state().own.bytes, placement->own_payload());
    EXPECT_THAT(run(engine->on_placement(nullptr, kNow)), SizeIs(10 - fetched.size()));
}

TEST_F(FetchEngineFill, EvictsNothingThatAGuestsPlanNeedsSoonWhileTheOwnerHasNoPlan) {
    make(kRecord * 4);
    engine->on_disconnect(kTrainer, kNow);
    engine->on_connect(kWorker, kStream, Party{1});
    const auto placement = join_group(dataset);
    std::vector<SampleIndex> foreign;
    for (SampleIndex sample = 0; sample < 10; ++sample) {
        if (!placement->is_own(sample)) {
            foreign.push_back(sample);
        }
    }
    foreign.resize(2);
    EXPECT_THAT(
        run(engine->on_plan(kWorker, StreamPlan::make(1, foreign, 0, 10).value(), kNow)),
        SizeIs(2));
    engine->on_placement(placement, kNow);
    EXPECT_THAT(run(order(kRecord * 4)), SizeIs(2)) << "room is left for two own samples";
    EXPECT_EQ(engine->counters().evicted_resident_samples, 0U);
}

// The event loop asks for the next deadline a moment after an event, when the rate limit may
// already allow the next fetch.
TEST_F(FetchEngineFill, IsDueAtOnceIfTheRateLimitAlreadyAllowsTheNextFetch) {
    make();
    EXPECT_THAT(order(Bytes::unlimited(), 1000).fetches, IsEmpty());
    const TimePoint later = kNow + milliseconds{50};
    EXPECT_EQ(engine->next_deadline(later), later);
    EXPECT_THAT(engine->tick(later).fetches, ElementsAre(resident(0)));
    EXPECT_GT(engine->next_deadline(later), later);
}

// The space on the disk may change the grant every second; to look at all samples each time would
// cost too much.
TEST_F(FetchEngineFill, LooksAtAllSamplesAgainOnlyForALargerOrANewGrant) {
    const test::Dataset large{std::vector<std::uint64_t>(40'000, kPayload)};
    FetchEngine filled{large.manifest(), EngineLimits{}, {kRecord, std::nullopt}};
    filled.open(kNow);
    const auto order = [&filled](EngineGrant grant) {
        grant.fill_bytes_per_second = 0;
        filled.on_grant(grant, kNow);
        return filled.next_deadline(kNow) == kNow;  // not all of them in one event
    };
    EXPECT_TRUE(order({Bytes{200}, std::nullopt}));
    filled.tick(kNow);
    EXPECT_FALSE(order({Bytes{200}, std::nullopt}));
    EXPECT_FALSE(order({Bytes{100}, std::nullopt}));
    EXPECT_FALSE(order({Bytes{200}, std::nullopt}));
    EXPECT_TRUE(filled.fill_state(kNow)->over);
    EXPECT_TRUE(order({Bytes{201}, std::nullopt}));
    filled.tick(kNow);
    EXPECT_TRUE(order({Bytes{200}, kNow + milliseconds{1}}));
}

// All of the other node's samples but the last are held, so they must stay.
TEST_F(FetchEngineFill, SearchesForEvictableSamplesInSmallSteps) {
    const test::Dataset large{std::vector<std::uint64_t>(6000, kPayload)};
    const auto placement = join_group(large);
    std::vector<SampleIndex> others;
    for (SampleIndex sample = 0; sample < 6000; ++sample) {
        if (!placement->is_own(sample)) {
            others.push_back(sample);
        }
    }
    EngineGrant grant{kRecord * others.size(), kNow + milliseconds{1}, 0, 0};
    FetchEngine filled{large.manifest(), EngineLimits{}, grant};
    for (const SampleIndex sample : others) {
        filled.adopt(sample, domain::SegmentClass::kResident);
    }
    filled.open(kNow);
    filled.on_connect(kTrainer, std::nullopt);
    const SampleIndex last = others.back();
    others.pop_back();
    filled.on_fetch(kTrainer, 1, others, kNow);
    EXPECT_THAT(filled.on_placement(placement, kNow).drops, IsEmpty());
    std::vector<SampleIndex> drops;
    for (int grants = 0; grants < 5 && drops.empty(); ++grants) {
        *grant.valid_until += milliseconds{1};
        drops = filled.on_grant(grant, kNow).drops;
    }
    EXPECT_THAT(drops, ElementsAre(last));
}

TEST_F(FetchEngineFill, FetchesSamplesOfAChunkTogether) {
    make({.max_in_flight = 2}, Bytes::unlimited());
    const SampleChunks chunks{{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, dataset.manifest()};
    engine->set_chunks(&chunks);
    Effects effects = order(Bytes::unlimited());
    EXPECT_THAT(
        effects.fetches,
        ElementsAre(resident(0), resident(2), resident(4), resident(6), resident(8)));
    EXPECT_THAT(run(std::move(effects)), SizeIs(10));
}

// Uses virtual time, an origin without latency, and orders that repeat as the operator's do.
TEST_F(FetchEngineFill, KeepsItsRateWithinFivePercent) {
    Prng prng{test::seed()};
    std::vector<std::uint64_t> sizes(3000);
    for (std::uint64_t& size : sizes) {
        size = 500 + prng.below(1000);
    }
    const test::Dataset large{sizes};
    FetchEngine filled{large.manifest(), EngineLimits{}, {Bytes::unlimited(), std::nullopt}};
    filled.open(kNow);
    const std::uint64_t rate = 50'000 + prng.below(200'000);
    TimePoint now = kNow;
    TimePoint ordered = kNow;
    Bytes taken{};
    Effects effects = filled.on_grant({Bytes::unlimited(), std::nullopt, 0, rate}, now);
    while (filled.fill_state(now)->stored.samples < sizes.size()) {
        while (!effects.fetches.empty()) {
            const SampleIndex sample = effects.fetches.back().sample;
            effects.fetches.pop_back();
            taken += Bytes{sizes[sample]};
            Effects more = filled.on_stored(sample, now);
            effects.fetches.insert(effects.fetches.end(), more.fetches.begin(), more.fetches.end());
        }
        now = filled.next_deadline(now).value_or(now + milliseconds{1});
        if (now - ordered >= milliseconds{700}) {
            ordered = now;
            effects = filled.on_grant({Bytes::unlimited(), std::nullopt, 0, rate}, now);
        } else {
            effects = filled.tick(now);
        }
    }
    const std::chrono::duration<double> took = now - kNow;
    EXPECT_NEAR(
        static_cast<double>(taken.count()) / took.count() / static_cast<double>(rate), 1, 0.05)
        << "seed " << test::seed();
}

}  // namespace
}  // namespace stoker::sidecar
