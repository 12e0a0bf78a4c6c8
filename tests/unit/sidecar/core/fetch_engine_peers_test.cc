// Samples owned by other nodes: where they are fetched and kept. Requests from peers: their
// separate slot and memory limits.
#include <gmock/gmock.h>

#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/placement.h"
#include "sidecar/core/sample_chunks.h"
#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr ConnectionId kAnchor{50};
constexpr ConnectionId kPeer{51};
constexpr ConnectionId kOtherPeer{52};

StartFetch from_peer(StartFetch fetch) {
    fetch.from_peer = true;
    return fetch;
}

// Ten samples: we own `own`, the other node owns `foreign`.
class FetchEnginePeers : public FetchEngineTest {
protected:
    void join() {
        const std::vector<std::string> nodes{"a", "b"};
        const auto placement = std::make_shared<Placement>(
            dataset.manifest(),
            [this](SampleIndex sample) {
                return dataset.manifest().sample(domain::SampleId{sample}).key;
            },
            nodes,
            0);
        own.clear();
        foreign.clear();
        for (SampleIndex sample = 0; sample < 10; ++sample) {
            (placement->is_own(sample) ? own : foreign).push_back(sample);
        }
        ASSERT_THAT(own, SizeIs(testing::Ge(3U)));
        ASSERT_THAT(foreign, SizeIs(testing::Ge(3U)));
        engine->on_connect(kAnchor, std::nullopt, kPeerParty);
        engine->on_placement(placement, kNow);
    }

    Effects peer_asks(SampleIndex sample, ConnectionId connection = kPeer) {
        engine->on_connect(connection, std::nullopt, kPeerParty);
        return fetch({sample}, connection);
    }

    std::vector<SampleIndex> own;
    std::vector<SampleIndex> foreign;
};

TEST_F(FetchEnginePeers, SamplesOfOtherOwnersComeFromPeers) {
    make(Bytes::unlimited());
    join();
    EXPECT_THAT(fetch({own[0]}).fetches, ElementsAre(resident(own[0])));
    EXPECT_THAT(fetch({foreign[0]}).fetches, ElementsAre(from_peer(resident(foreign[0]))));
    EXPECT_EQ(engine->counters().peer_fetches, 1U);
}

TEST_F(FetchEnginePeers, OwnSamplesComeFromTheirFormerOwnersIfToldSo) {
    make(Bytes::unlimited());
    join();
    engine->set_takes_over([this](SampleIndex sample) { return sample != own[1]; });
    EXPECT_THAT(fetch({own[0]}).fetches, ElementsAre(from_peer(resident(own[0]))));
    EXPECT_THAT(fetch({own[1]}).fetches, ElementsAre(resident(own[1])));
    EXPECT_THAT(peer_asks(own[2]).fetches, ElementsAre(from_peer(resident(own[2]))));
    EXPECT_THAT(peer_asks(foreign[0], kOtherPeer).fetches, ElementsAre(resident(foreign[0])));
    engine->on_redirected(own[0], kNow);
    EXPECT_THAT(stored(own[0]).fetches, IsEmpty());
    EXPECT_EQ(engine->counters().fetches, 4U);
}

TEST_F(FetchEnginePeers, TakeOversDoNotCloseTheOriginsBreaker) {
    make(Bytes::unlimited());
    join();
    plan({own[0]});
    engine->on_fetch_failed(own[0], kDown, kNow);
    ASSERT_FALSE(engine->admission().origin.is_closed());
    engine->set_takes_over([](SampleIndex) { return true; });
    fetch({own[1]});
    stored(own[1]);
    EXPECT_FALSE(engine->admission().origin.is_closed());
}

TEST_F(FetchEnginePeers, TakeOversStartOnlyAsFarAsTheOriginCouldDeliverThem) {
    make(Bytes::unlimited());
    join();
    engine->set_takes_over([](SampleIndex) { return true; });
    engine->on_grant({Bytes::unlimited(), std::nullopt, 1}, kNow);
    plan({own[0], own[1]});
    const TimePoint later = kNow + std::chrono::seconds{1};
    EXPECT_THAT(engine->tick(later).fetches, ElementsAre(from_peer(resident(own[0]))));
    EXPECT_THAT(engine->on_stored(own[0], later).fetches, ElementsAre(from_peer(resident(own[1]))))
        << "the other node has sent the sample, so the limit is not used";
}

TEST_F(FetchEnginePeers, RefusedTakeOversUseTheRateLimitOnce) {
    make(Bytes::unlimited());
    join();
    engine->set_takes_over([](SampleIndex) { return true; });
    engine->on_grant({Bytes::unlimited(), std::nullopt, kPayload}, kNow);
    const TimePoint later = kNow + std::chrono::seconds{1};
    ASSERT_TRUE(engine->admission().rate.allows(later));
    engine->on_fetch(kTrainer, 1, {own[0]}, later);
    EXPECT_FALSE(engine->admission().rate.allows(later));
    engine->on_redirected(own[0], later);
    EXPECT_TRUE(engine->admission().rate.allows_urgent(later));
    engine->on_stored(own[0], later);
    EXPECT_FALSE(engine->admission().rate.allows(later));
}

// Without this rule all take-overs start after one back-off, are refused together, and then go to
// an origin that is down.
TEST_F(FetchEnginePeers, ATakeOverAheadIsTheOriginsProbe) {
    make(Bytes::unlimited());
    join();
    plan({own[0], own[1]});
    engine->on_fetch_failed(own[0], kDown, kNow);
    engine->on_fetch_failed(own[1], kDown, kNow);
    engine->set_takes_over([](SampleIndex) { return true; });
    const TimePoint later = kNow + CircuitBreaker::Limits{}.backoff_min;
    ASSERT_THAT(engine->tick(later).fetches, ElementsAre(from_peer(resident(own[0]))));
    engine->on_redirected(own[0], later);
    engine->on_fetch_failed(own[0], kDown, later);
    EXPECT_FALSE(engine->admission().origin.allows(later));
    const TimePoint last = later + 2 * CircuitBreaker::Limits{}.backoff_min;
    ASSERT_THAT(engine->tick(last).fetches, ElementsAre(from_peer(resident(own[0]))));
    EXPECT_THAT(engine->on_stored(own[0], last).fetches, ElementsAre(from_peer(resident(own[1]))))
        << "the probe has not reached the origin";
}

TEST_F(FetchEnginePeers, ARedirectedFetchAheadIsTheOriginsProbe) {
    make(Bytes::unlimited());
    join();
    plan({own[0], foreign[0]});
    engine->on_fetch_failed(own[0], kDown, kNow);
    const TimePoint later = kNow + CircuitBreaker::Limits{}.backoff_min;
    ASSERT_TRUE(engine->admission().origin.allows(later));
    engine->on_redirected(foreign[0], later);
    EXPECT_FALSE(engine->admission().origin.allows(later));
}

TEST_F(FetchEnginePeers, SlowFetchFromAPeerFreesItsSlotUntilTheOriginIsAsked) {
    make({.max_in_flight = 1}, Bytes::unlimited());
    join();
    EXPECT_THAT(
        fetch({foreign[0], foreign[1], own[0]}).fetches,
        ElementsAre(from_peer(resident(foreign[0]))));
    EXPECT_THAT(
        engine->on_slow(foreign[0], kNow).fetches, ElementsAre(from_peer(resident(foreign[1]))));
    engine->on_redirected(foreign[0], kNow);
    EXPECT_THAT(engine->on_slow(foreign[0], kNow).fetches, IsEmpty());
    EXPECT_THAT(engine->on_slow(foreign[1], kNow).fetches, IsEmpty());
    EXPECT_THAT(stored(foreign[0]).fetches, ElementsAre(resident(own[0])));
}

TEST_F(FetchEnginePeers, SamplesOwnedByOtherNodesAreResidentOnlyIfAllOwnOnesFit) {
    make(Bytes::unlimited());
    join();
    engine->on_grant({kRecord * own.size(), std::nullopt}, kNow);
    EXPECT_THAT(fetch({foreign[0]}).fetches, ElementsAre(from_peer(window(foreign[0]))));
    for (const SampleIndex sample : own) {
        EXPECT_THAT(fetch({sample}).fetches, ElementsAre(resident(sample)));
    }
    engine->on_grant({kRecord * (own.size() + 1), std::nullopt}, kNow);
    EXPECT_THAT(fetch({foreign[1]}).fetches, ElementsAre(from_peer(resident(foreign[1]))));
    EXPECT_THAT(fetch({foreign[2]}).fetches, ElementsAre(from_peer(window(foreign[2]))));
}

TEST_F(FetchEnginePeers, OwnSamplesEvictResidentsOwnedByOtherNodesWhenAGroupForms) {
    make(kRecord * 3);
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        fetch({sample});
        stored(sample);
    }
    engine->on_fetch(kTrainer, 99, {}, kNow);
    join();
    std::vector<SampleIndex> strangers;
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        if (std::ranges::count(foreign, sample) > 0) {
            strangers.push_back(sample);
        }
    }
    ASSERT_THAT(strangers, testing::Not(IsEmpty()));
    EXPECT_EQ(engine->account().resident_samples, 3U) << "nothing leaves before it must";
    std::vector<SampleIndex> dropped;
    for (const SampleIndex sample : own) {
        if (engine->sample(sample).state == SampleState::kAbsent &&
            dropped.size() < strangers.size()) {
            const Effects effects = fetch({sample});
            EXPECT_THAT(effects.fetches, ElementsAre(resident(sample)));
            std::ranges::copy(effects.drops, std::back_inserter(dropped));
            stored(sample);
        }
    }
    EXPECT_EQ(dropped, strangers);
}

TEST_F(FetchEnginePeers, SamplesOwnedByOtherNodesNeverEvictOwnOnes) {
    make(EngineLimits{}, Bytes::unlimited(), std::make_unique<Lru>());
    join();
    engine->on_grant({kRecord * own.size(), std::nullopt}, kNow);
    for (const SampleIndex sample : own) {
        fetch({sample});
        stored(sample);
        consume({sample});
    }
    const Effects effects = fetch({foreign[0]});
    EXPECT_THAT(effects.drops, IsEmpty());
    EXPECT_THAT(effects.fetches, ElementsAre(from_peer(window(foreign[0]))));
}

TEST_F(FetchEnginePeers, SmallerGrantEvictsSamplesOwnedByOtherNodesFirst) {
    make(Bytes::unlimited());
    join();
    for (const SampleIndex sample : {foreign[0], own[0], foreign[1], own[1]}) {
        fetch({sample});
        stored(sample);
    }
    engine->on_fetch(kTrainer, 99, {}, kNow);
    EXPECT_THAT(
        engine->on_grant({kRecord * 2, std::nullopt}, kNow).drops,
        ElementsAre(foreign[0], foreign[1]));
}

TEST_F(FetchEnginePeers, RequestsOfPeersAreFetchedFromTheOriginOnly) {
    make(Bytes::unlimited());
    join();
    EXPECT_THAT(peer_asks(own[0]).fetches, ElementsAre(resident(own[0])));
    EXPECT_THAT(peer_asks(foreign[0], kOtherPeer).fetches, ElementsAre(resident(foreign[0])))
        << "a request is never forwarded";
}

// The node's only slot waits for a peer, and the peer's only slot for this node: without slots for
// peers' requests, neither would answer.
TEST_F(FetchEnginePeers, RequestsOfPeersHaveTheirOwnSlots) {
    make({.max_in_flight = 1}, Bytes::unlimited());
    join();
    EXPECT_THAT(fetch({foreign[0]}).fetches, SizeIs(1));
    EXPECT_THAT(fetch({foreign[1]}).fetches, IsEmpty());
    EXPECT_THAT(peer_asks(own[0]).fetches, ElementsAre(resident(own[0])));
    EXPECT_THAT(peer_asks(own[1], kOtherPeer).fetches, IsEmpty()) << "no more than our own";
    EXPECT_THAT(stored(own[0]).fetches, ElementsAre(resident(own[1])));
}

TEST_F(FetchEnginePeers, RequestsOfPeersHaveTheirOwnMemory) {
    make({.memory = Bytes{kPayload * 4}}, Bytes::unlimited());
    join();
    EXPECT_THAT(fetch({foreign[0], foreign[1], foreign[2]}).fetches, SizeIs(3));
    EXPECT_THAT(fetch({own[0]}).fetches, IsEmpty()) << "a quarter is left to peers";
    EXPECT_THAT(peer_asks(own[1]).fetches, SizeIs(1));
    EXPECT_THAT(peer_asks(own[2], kOtherPeer).fetches, IsEmpty());
}

// The window is full of samples that come from peers.
TEST_F(FetchEnginePeers, RefusesRequestsOfPeersIfTheWindowIsFull) {
    make({.window = kRecord * 4}, Bytes::zero());
    join();
    fetch({foreign[0], foreign[1], foreign[2]});
    EXPECT_THAT(peer_asks(own[0]).fetches, ElementsAre(window(own[0])));
    const Effects second = peer_asks(own[1], kOtherPeer);
    EXPECT_THAT(second.fetches, IsEmpty()) << "it waits for a fetch of the peers' own";
    EXPECT_THAT(second.replies, IsEmpty());
}

TEST_F(FetchEnginePeers, RateLimitCountsTheOriginOnly) {
    make(Bytes::unlimited());
    join();
    EngineGrant grant{Bytes::unlimited(), std::nullopt, 1};
    engine->on_grant(grant, kNow);
    fetch({own[0]});
    fetch({own[1]});
    EXPECT_THAT(fetch({own[2]}).fetches, IsEmpty()) << "the limit is used up";
    EXPECT_THAT(fetch({foreign[0]}, kTrainer).fetches, IsEmpty()) << "in the order of demands";
}

TEST_F(FetchEnginePeers, PrefetchesFromPeersIgnoreTheOriginsLimits) {
    make({.max_in_flight = 16}, Bytes::unlimited());
    join();
    engine->on_grant({Bytes::unlimited(), std::nullopt, 1}, kNow);
    fetch({own[0]});
    const Effects effects = plan({foreign[0], foreign[1], own[1], foreign[2]});
    EXPECT_THAT(
        effects.fetches,
        ElementsAre(from_peer(resident(foreign[0])), from_peer(resident(foreign[1]))));
}

TEST_F(FetchEnginePeers, SamplesOfAnAbsentOwnerObeyTheOriginsLimits) {
    make({.max_in_flight = 16}, Bytes::unlimited());
    join();
    engine->set_may_ask([this](SampleIndex sample) { return sample == foreign[2]; });
    engine->on_grant({Bytes::unlimited(), std::nullopt, 1}, kNow);
    EXPECT_THAT(fetch({foreign[0]}).fetches, ElementsAre(resident(foreign[0])));
    EXPECT_THAT(plan({foreign[1], foreign[2]}).fetches, IsEmpty()) << "in the order of need";
    EXPECT_THAT(
        plan({foreign[2], foreign[1]}).fetches, ElementsAre(from_peer(resident(foreign[2]))));
}

TEST_F(FetchEnginePeers, AnswersOfPeersDoNotCloseTheOriginsBreaker) {
    make(Bytes::unlimited());
    join();
    plan({own[0]});
    engine->on_fetch_failed(own[0], kDown, kNow);
    ASSERT_FALSE(engine->admission().origin.is_closed());
    fetch({foreign[0]});
    stored(foreign[0]);
    EXPECT_FALSE(engine->admission().origin.is_closed()) << "a peer's answer says nothing of it";
    EXPECT_FALSE(engine->admission().origin_error.empty());
}

TEST_F(FetchEnginePeers, ARedirectedFetchIsAnOriginFetch) {
    make(Bytes::unlimited());
    join();
    engine->on_grant({Bytes::unlimited(), std::nullopt, 1}, kNow);
    fetch({foreign[0]});
    ASSERT_TRUE(engine->admission().rate.allows_urgent(kNow));
    engine->on_redirected(foreign[0], kNow);
    EXPECT_FALSE(engine->admission().rate.allows_urgent(kNow));
    EXPECT_FALSE(engine->sample(foreign[0]).from_peer);
    const Effects effects = engine->on_fetch_failed(foreign[0], kGone, kNow);
    EXPECT_THAT(effects.replies, SizeIs(1));
}

TEST_F(FetchEnginePeers, ReadsFromPeersNeedNoOrigin) {
    make(Bytes::unlimited());
    join();
    fetch({own[0], foreign[0]});
    stored(own[0]);
    stored(foreign[0]);
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {own[0], foreign[0]}, kNow, &counts);
    EXPECT_EQ(counts.fetched_samples, 1U);
    EXPECT_EQ(counts.hit_samples, 1U);
}

TEST_F(FetchEnginePeers, WithoutAGroupEverySampleIsOwn) {
    make(Bytes::unlimited());
    join();
    engine->on_placement(nullptr, kNow);
    EXPECT_THAT(fetch({foreign[0]}).fetches, ElementsAre(resident(foreign[0])));
}

// All ten samples lie in one chunk, which kStream has fetched whole.
class FetchEnginePeersChunks : public FetchEnginePeers {
protected:
    void join_with_chunk(EngineLimits limits) {
        chunks = {std::vector<std::uint32_t>(10, 0), dataset.manifest()};
        engine.emplace(dataset.manifest(), limits, EngineGrant{Bytes::unlimited(), std::nullopt});
        engine->set_chunks(&chunks);
        engine->open(kNow);
        engine->on_connect(kTrainer, kStream);
        engine->set_by_chunk(kStream, true);
        join();
    }

    SampleChunks chunks;
};

TEST_F(FetchEnginePeersChunks, OwnSamplesShareASlotAndOthersTakeOneEach) {
    join_with_chunk({.max_in_flight = 2});
    const Effects effects = plan({own[0], foreign[0], own[2], foreign[1], own[1]});
    EXPECT_THAT(
        effects.fetches,
        ElementsAre(
            resident(own[0]), resident(own[1]), resident(own[2]), from_peer(resident(foreign[0]))));
    EXPECT_THAT(stored(own[1]).fetches, IsEmpty()) << "the slot is that of the first sample";
    EXPECT_THAT(stored(own[0]).fetches, ElementsAre(from_peer(resident(foreign[1]))));
}

TEST_F(FetchEnginePeersChunks, OwnSamplesOfAChunkAreNotTakenOver) {
    join_with_chunk({.max_in_flight = 1});
    engine->set_takes_over([](SampleIndex) { return true; });
    EXPECT_THAT(plan({own[0], own[1]}).fetches, ElementsAre(resident(own[0]), resident(own[1])));
    EXPECT_THAT(peer_asks(own[2]).fetches, ElementsAre(resident(own[2])));
}

TEST_F(FetchEnginePeersChunks, SampleOfAnotherOwnerStartsNoChunk) {
    join_with_chunk({.max_in_flight = 1});
    EXPECT_THAT(
        plan({foreign[0], own[0], own[1]}).fetches, ElementsAre(from_peer(resident(foreign[0]))));
    EXPECT_THAT(stored(foreign[0]).fetches, ElementsAre(resident(own[0]), resident(own[1])));
}

TEST_F(FetchEnginePeersChunks, DemandOfAnotherOwnersSampleStartsNoChunk) {
    join_with_chunk({.max_in_flight = 1});
    plan({own[0], foreign[0], foreign[1], own[1]});
    EXPECT_THAT(fetch({foreign[0]}).fetches, IsEmpty()) << "the chunk has the slot";
    EXPECT_THAT(stored(own[0]).fetches, ElementsAre(from_peer(resident(foreign[0]))));
}

TEST_F(FetchEnginePeersChunks, DemandOfAPeerStartsNoChunk) {
    join_with_chunk({.max_in_flight = 1});
    plan({foreign[0], own[0], own[1]});
    EXPECT_THAT(peer_asks(own[0]).fetches, ElementsAre(resident(own[0])));
}

TEST_F(FetchEnginePeersChunks, ChunkLeavesPeersTheirMemory) {
    join_with_chunk({.memory = Bytes{kPayload * 4}, .max_in_flight = 8});
    EXPECT_THAT(plan({own[0], own[1], own[2]}).fetches, SizeIs(3));
    ASSERT_GE(own.size(), 4U);
    EXPECT_THAT(fetch({own[3]}).fetches, IsEmpty()) << "a quarter is left to peers";
    EXPECT_THAT(peer_asks(own[3]).fetches, ElementsAre(resident(own[3])));
}

TEST_F(FetchEnginePeersChunks, WithoutAGroupTheWholeChunkIsFetched) {
    join_with_chunk({.max_in_flight = 1});
    engine->on_placement(nullptr, kNow);
    EXPECT_THAT(
        plan({foreign[0], own[0]}).fetches,
        testing::UnorderedElementsAre(resident(foreign[0]), resident(own[0])));
}

}  // namespace
}  // namespace stoker::sidecar
