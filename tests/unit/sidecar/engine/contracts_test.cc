#include "sidecar/engine/contracts.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/begin_of.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kCount = 400;

SamplerSettings settings(
    std::string contract, std::map<std::string, double, std::less<>> parameters = {}) {
    return {.contract = std::move(contract), .seed = 3, .parameters = std::move(parameters)};
}

local::Begin begin_of(std::string contract, std::string job, std::uint64_t epoch) {
    local::Begin begin = test::begin_of(std::move(contract), std::move(job), epoch);
    if (begin.contract == "importance") {
        begin.parameters = {{"warmupEpochs", 1}, {"beta", 1}, {"reuseFactor", 100}};
    }
    return begin;
}

TEST(Contracts, RejectsUnknownContractsByName) {
    Contracts contracts{kCount, 100};
    EXPECT_THAT(
        contracts.make(test::kEmptyNode, settings("fast"), 0).error().message,
        HasSubstr("no contract 'fast'"));
    const auto unknown =
        contracts.make(test::kEmptyNode, settings("importance", {{"bta", 1}}), 0).error();
    EXPECT_EQ(unknown.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(unknown.message, HasSubstr("no parameter 'bta' here; it has: family, beta"));
    EXPECT_THAT(
        contracts.make(test::kEmptyNode, settings("importance", {{"beta", 17}}), 0).error().message,
        HasSubstr("beta is 17, outside 0..16"));
    EXPECT_FALSE(
        contracts.make(test::kEmptyNode, settings("windowed", {{"beta", 1}}), 0).has_value());
    EXPECT_TRUE(
        contracts
            .make(test::kEmptyNode, settings("importance", {{"family", 1}, {"redundancy", 2}}), 0)
            .has_value());
    EXPECT_FALSE(
        contracts
            .make(test::kEmptyNode, settings("importance", {{"family", 1}, {"redundancy", 3}}), 0)
            .has_value());
}

TEST(Contracts, FamilyIowaHasItsOwnSamplerAndParameters) {
    Contracts contracts{kCount, 100};
    EXPECT_TRUE(
        contracts
            .make(test::kEmptyNode, settings("importance", {{"family", 1}, {"outRate", 0.2}}), 0)
            .has_value());
    EXPECT_FALSE(contracts.make(test::kEmptyNode, settings("importance", {{"outRate", 0.2}}), 0)
                     .has_value());
    EXPECT_FALSE(
        contracts.make(test::kEmptyNode, settings("importance", {{"family", 1}, {"beta", 0.2}}), 0)
            .has_value());
}

TEST(Contracts, EveryRankOfAReplicatingJobMayDraw) {
    Contracts contracts{kCount, 100};
    auto two = settings("replicate", {{"replication", 2}});
    two.ranks = 2;
    const auto sampler = contracts.make(test::kEmptyNode, two, 1).value();
    std::vector<Draw> draws;
    for (const std::uint32_t rank : {1U, 0U}) {
        sampler->begin_epoch(rank, 0, 0);
        sampler->draw(rank, kCount, draws);
    }
    EXPECT_EQ(draws.size(), kCount);
}

TEST(Contracts, WindowedJobKeepsWindowSamplesUntilDrawn) {
    test::NodeContents node;
    Contracts contracts{kCount, 100};
    node.store(7, true);
    contracts.on_stored(7, true);
    node.store(8);
    contracts.on_stored(8, false);
    EXPECT_EQ(contracts.window_keeper(), nullptr);
    const auto sampler = contracts.make(node, settings("windowed"), 0).value();
    const WindowKeeper* keeper = contracts.window_keeper();
    ASSERT_NE(keeper, nullptr);
    sampler->begin_epoch(0, 0, 0);
    EXPECT_TRUE(keeper->keeps(8));
    std::vector<Draw> draws;
    sampler->draw(0, kCount, draws);
    EXPECT_EQ(draws.size(), kCount);
    EXPECT_FALSE(keeper->keeps(8));
}

TEST(Contracts, ReadsAllChunksOfAGroupBeforeTheNextGroup) {
    constexpr std::uint32_t kChunk = 20;
    Contracts contracts{kCount, 100, {}, kChunk};
    const auto sampler =
        contracts.make(test::kEmptyNode, settings("windowed", {{"chunkGroup", 2}}), 0).value();
    EXPECT_EQ(contracts.window_keeper(), nullptr)
        << "its order is fixed, so it takes no part in the scan";
    sampler->begin_epoch(0, 0, 0);
    std::vector<Draw> draws;
    sampler->draw(0, kCount, draws);
    ASSERT_EQ(draws.size(), kCount);
    std::set<SampleIndex> all;
    for (std::size_t group = 0; group < kCount; group += std::size_t{2} * kChunk) {
        std::set<SampleIndex> chunks;
        for (std::size_t i = group; i < group + std::size_t{2} * kChunk; ++i) {
            chunks.insert(draws[i].served / kChunk);
            all.insert(draws[i].served);
        }
        EXPECT_EQ(chunks.size(), 2U);
    }
    EXPECT_EQ(all.size(), kCount);
}

TEST(Contracts, GroupsTheChunksOfAPackedDataset) {
    std::vector<std::uint32_t> chunk_of;
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        chunk_of.push_back(sample % 8);  // neighbours lie in different chunks
    }
    const std::vector<std::uint64_t> sizes(kCount, 10);
    const SampleChunks chunks{chunk_of, SampleSizes{sizes}};
    Contracts contracts{kCount, 100, {}, 20, &chunks};
    SamplerSettings wanted = settings("windowed", {{"chunkGroup", 2}});
    wanted.ranks = 2;
    std::set<SampleIndex> all;
    for (const std::uint32_t rank : {0U, 1U}) {
        const auto sampler = contracts.make(test::kEmptyNode, wanted, rank).value();
        EXPECT_EQ(sampler->group_samples(), 100U);
        sampler->begin_epoch(rank, 0, 0);
        std::vector<Draw> draws;
        sampler->draw(rank, kCount, draws);
        ASSERT_EQ(draws.size(), 200U);
        for (std::size_t at = 0; at < 200; at += 100) {
            std::set<std::uint32_t> group;
            for (std::size_t i = at; i < at + 100; ++i) {
                group.insert(chunk_of[draws[i].served]);
                all.insert(draws[i].served);
            }
            EXPECT_EQ(group.size(), 2U);
        }
    }
    EXPECT_EQ(all.size(), kCount);
}

TEST(Contracts, ZeroBetaReadsAllSamples) {
    Contracts contracts{kCount, 100};
    const auto sampler = contracts.make(
        test::kEmptyNode, settings("importance", {{"beta", 0}, {"warmupEpochs", 0}}), 0);
    ASSERT_TRUE(sampler.has_value());
}

TEST(Contracts, RanksMayReportDifferentAccuracies) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    auto begin = begin_of("replicate", "j", 0);
    begin.world_size = 2;
    begin.parameters = {{"accuracy", 0.5}, {"waiting", 0.2}};
    ASSERT_TRUE(service.begin(StreamId{1}, begin, {}).has_value());
    begin.rank = 1;
    begin.parameters = {{"waiting", 0.3}};
    const auto second = service.begin(StreamId{2}, begin, {});
    EXPECT_TRUE(second.has_value()) << second.error().message;
}

TEST(Contracts, LShareIsTheMeanOfTheJobsSettings) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    const auto begin = [&](StreamId stream, const std::string& job, double share) {
        auto frame = begin_of("importance", job, 0);
        frame.parameters = {{"lShare", share}};
        return service.begin(stream, frame, {}).has_value();
    };
    ASSERT_TRUE(begin(StreamId{1}, "j", 0.5));
    const auto eviction = contracts.importance().new_eviction();
    const auto* policy = dynamic_cast<const ImportanceEviction*>(eviction.get());
    ASSERT_NE(policy, nullptr);
    EXPECT_DOUBLE_EQ(policy->l_share(), 0.5);
    ASSERT_TRUE(begin(StreamId{2}, "k", 0.1));
    EXPECT_DOUBLE_EQ(policy->l_share(), 0.3);
}

std::vector<std::byte> bits_of(const std::set<std::uint64_t>& samples) {
    std::vector<std::byte> bits((kCount + 7) / 8);
    for (const std::uint64_t sample : samples) {
        bits[sample / 8] |= std::byte{1} << (sample % 8);
    }
    return bits;
}

// The trainer read part of an epoch without a sidecar, in an order of its own.
TEST(Contracts, ServesTheRestOfAnEpochBegunWithoutASidecarOnce) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    std::set<std::uint64_t> alone;
    for (std::uint64_t sample = 0; sample < 150; ++sample) {
        alone.insert(sample);
    }
    auto begin = begin_of("importance", "j", 0);
    begin.skip = alone.size();
    ASSERT_TRUE(service.begin(StreamId{1}, begin, {bits_of(alone), ""}).has_value());
    std::set<std::uint64_t> rest;
    std::size_t draws = 0;
    for (bool ended = false; !ended;) {
        const auto drawn = service.draw(StreamId{1}, {0, 20}).value();
        rest.insert(drawn.served.begin(), drawn.served.end());
        draws += drawn.served.size();
        ended = drawn.ended;
    }
    EXPECT_EQ(draws, kCount - alone.size());
    EXPECT_EQ(rest.size(), draws);
    EXPECT_EQ(*rest.begin(), 150U);
}

// Residency has changed since, so the same steps would choose other substitutes.
TEST(Contracts, ResumeServesNoSampleTwice) {
    test::NodeContents node;
    Contracts contracts{kCount, 100};
    SamplerService service{node, kCount, contracts};
    for (SampleIndex sample = 0; sample < kCount; sample += 2) {
        node.store(service, sample, true);
    }
    std::set<std::uint64_t> had;
    for (const std::uint64_t epoch : {0U, 1U}) {
        ASSERT_TRUE(service.begin(StreamId{1}, begin_of("importance", "j", epoch), {}).has_value());
        for (std::uint32_t batch = 0; batch < (epoch == 0 ? kCount / 20 : 5); ++batch) {
            const auto drawn = service.draw(StreamId{1}, {epoch, 20}).value();
            service.on_losses(
                StreamId{1}, {epoch, drawn.served, {drawn.served.begin(), drawn.served.end()}});
            if (epoch == 1) {
                had.insert(drawn.served.begin(), drawn.served.end());
            }
        }
    }
    for (SampleIndex sample = 0; sample < kCount; sample += 4) {
        node.drop(service, sample);
        node.store(service, sample + 1, true);
    }
    auto again = begin_of("importance", "j", 1);
    again.skip = 100;
    ASSERT_TRUE(service.begin(StreamId{1}, again, {bits_of(had), ""}).has_value());
    std::size_t stand_ins = 0;
    for (bool ended = false; !ended;) {
        const auto drawn = service.draw(StreamId{1}, {1, 20}).value();
        for (std::size_t i = 0; i < drawn.served.size(); ++i) {
            stand_ins += drawn.served[i] != drawn.requested[i] ? 1 : 0;
            EXPECT_FALSE(had.contains(drawn.served[i])) << drawn.served[i];
        }
        ended = drawn.ended;
    }
    EXPECT_GT(stand_ins, 0U);
}

// Samples 2i and 2i+1 differ only in three bits of their fingerprints.
TEST(Contracts, LeavesOutDuplicatesInTheEpochAfterTheirFingerprintsAreReported) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    auto begin = begin_of("importance", "j", 0);
    begin.parameters = {{"family", 1}, {"redundancy", 1}, {"outRate", 0}};
    const auto draw_all = [&](std::uint64_t epoch) {
        begin.epoch = epoch;
        EXPECT_TRUE(service.begin(StreamId{1}, begin, {}).has_value());
        std::set<std::uint64_t> drawn;
        for (bool ended = false; !ended;) {
            const auto some = service.draw(StreamId{1}, {epoch, 20}).value();
            service.on_losses(
                StreamId{1}, {epoch, some.served, std::vector<float>(some.served.size(), 1)});
            drawn.insert(some.served.begin(), some.served.end());
            ended = some.ended;
        }
        return drawn;
    };
    EXPECT_EQ(draw_all(0).size(), kCount);
    local::Similarity similarity{{kCount, ~0ULL}, {1, 1}};  // nonexistent samples
    for (std::uint64_t sample = 0; sample < kCount; ++sample) {
        similarity.samples.push_back(sample);
        similarity.hashes.push_back(((sample / 2) << 4U) * 0x10001ULL | (sample % 2 == 0 ? 0 : 7));
    }
    service.on_similarity(StreamId{7}, similarity);  // unknown stream
    EXPECT_EQ(draw_all(1).size(), kCount);
    service.on_similarity(StreamId{1}, similarity);
    const auto drawn = draw_all(2);
    const auto snapshot = service.snapshot(StreamId{1}).value().state;
    for (std::uint64_t sample : drawn) {
        EXPECT_EQ(sample % 2, 0U);
    }

    SamplerService later{test::kEmptyNode, kCount, contracts};
    const std::string state{reinterpret_cast<const char*>(snapshot.data()), snapshot.size()};
    begin.epoch = 2;
    ASSERT_TRUE(later.begin(StreamId{1}, begin, {{}, state}).has_value());
    EXPECT_EQ(later.draw(StreamId{1}, {2, kCount}).value().served.size(), drawn.size());
}

class ImportanceContract : public testing::Test {
protected:
    // One epoch; sample i has loss i.
    std::vector<std::uint64_t> run_epoch(std::uint64_t epoch) {
        EXPECT_TRUE(service.begin(kStream, begin_of("importance", "j", epoch), {}).has_value());
        if (auto fresh = contracts.importance().new_eviction()) {
            eviction = std::move(fresh);
        }
        std::vector<std::uint64_t> all;
        for (bool ended = false; !ended;) {
            const auto drawn = service.draw(kStream, {epoch, 20}).value();
            std::vector<float> losses(drawn.served.begin(), drawn.served.end());
            service.on_losses(kStream, {epoch, drawn.served, losses});
            all.insert(all.end(), drawn.served.begin(), drawn.served.end());
            ended = drawn.ended;
        }
        return all;
    }

    [[nodiscard]] bool displaces(SampleIndex incoming, SampleIndex resident) const {
        struct Any final {
            [[nodiscard]] bool operator()(SampleIndex /*sample*/) const { return true; }
        };

        std::vector<SampleIndex> victims;
        return eviction->make_room(incoming, Bytes{100}, Any{}, victims) &&
               victims == std::vector{resident};
    }

    static constexpr StreamId kStream{1};
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    std::unique_ptr<EvictionPolicy> eviction;
};

TEST_F(ImportanceContract, ReadsAllInTheWarmUpThenFewerUnimportantSamples) {
    const auto first = run_epoch(0);
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), kCount);
    run_epoch(1);
    const auto third = run_epoch(2);
    EXPECT_LT(third.size(), kCount * 9 / 10);
    const auto high = std::ranges::count_if(third, [](auto id) { return id >= kCount / 2; });
    EXPECT_GT(high, static_cast<std::ptrdiff_t>(third.size() / 2));
}

TEST_F(ImportanceContract, KeepsImportantSamplesAndEvictsNoneInFullEpochs) {
    run_epoch(0);
    ASSERT_NE(eviction, nullptr);
    EXPECT_EQ(contracts.importance().new_eviction(), nullptr) << "one is enough";
    eviction->on_resident(10, Bytes{100});
    EXPECT_FALSE(displaces(kCount - 1, 10)) << "held in a full epoch";
    run_epoch(1);
    for (int calls = 0; calls < 10; ++calls) {
        eviction->on_read(10, true);
    }
    EXPECT_TRUE(displaces(kCount - 1, 10));
}

}  // namespace
}  // namespace stoker::sidecar
