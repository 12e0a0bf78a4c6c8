// Jobs of guests beside jobs of the dataset's own namespace.
#include <gtest/gtest.h>

#include "sidecar/engine/contracts.h"
#include "sidecar/engine/sampler_service.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 20;

class SamplerServiceGuests : public testing::Test {
protected:
    Result<local::Begun> begin(StreamId stream, const std::string& job, Party party) {
        local::Begin begin;
        begin.contract = "importance";
        begin.job = job;
        begin.batch = 4;
        return service.begin(stream, begin, {}, party.value(), party);
    }

    // Creates the job's sampler, then disconnects without drawing.
    bool begin_and_leave(const std::string& job, Party party) {
        const bool begun = begin(StreamId{99}, job, party).has_value();
        service.on_losses(StreamId{99}, {0, {1, 2}, {0.5F, 0.7F}});
        service.leave(StreamId{99});
        return begun;
    }

    Contracts contracts{kCount, 10};
    SamplerService service{
        test::kEmptyNode,
        kCount,
        contracts,
        SamplerService::Limits{.samplers = 3, .guest_samplers = 2, .guests_samplers = 3}};
};

TEST_F(SamplerServiceGuests, AGuestsManyJobsEvictOnlyItsOwnSamplers) {
    ASSERT_TRUE(begin_and_leave("own", kOwnParty));
    ASSERT_TRUE(begin_and_leave("other", Party{2}));
    for (int job = 0; job < 1000; ++job) {
        ASSERT_TRUE(begin_and_leave("job-" + std::to_string(job), Party{1}));
    }
    EXPECT_EQ(service.job_count(), 4U);
    EXPECT_EQ(begin(StreamId{1}, "own", kOwnParty)->losses, 2U) << "it lost what it had learnt";
    EXPECT_EQ(begin(StreamId{2}, "other", Party{2})->losses, 2U);
}

TEST_F(SamplerServiceGuests, GuestsWindowedRanksLeaveRoomForTheOwnParty) {
    SamplerService wide{test::kEmptyNode, kCount, contracts};
    const auto begin_rank = [&](std::uint64_t stream, std::uint32_t rank, Party party) {
        local::Begin begin;
        begin.contract = "windowed";
        begin.job = std::to_string(party.value());
        begin.rank = rank;
        begin.world_size = 64;
        return wide.begin(StreamId{stream}, begin, {}, party.value(), party);
    };
    for (std::uint32_t rank = 0; rank < PartyScans::kGuestReadersMax; ++rank) {
        ASSERT_TRUE(begin_rank(100 + rank, rank, Party{1}).has_value());
    }
    EXPECT_EQ(begin_rank(200, 20, Party{1}).error().code, ErrorCode::kResourceExhausted);
    for (std::uint32_t rank = 0; rank < NeedIndex::kReadersMax; ++rank) {
        ASSERT_TRUE(begin_rank(300 + rank, rank, kOwnParty).has_value()) << rank;
    }
    wide.leave(StreamId{100});
    EXPECT_TRUE(begin_rank(200, 20, Party{1}).has_value()) << "an idle rank makes place";
}

TEST_F(SamplerServiceGuests, BoundsGuestSamplersByDatasetSize) {
    SamplerService large{
        test::kEmptyNode,
        kCount,
        contracts,
        SamplerService::Limits{
            .guest_sampler_samples = 2 * kCount, .guests_sampler_samples = 3 * kCount}};
    const auto begin_in = [&](std::uint64_t stream, const char* contract, Party party) {
        local::Begin begin;
        begin.contract = contract;
        begin.job = std::to_string(stream);
        return large.begin(StreamId{stream}, begin, {}, party.value(), party).has_value();
    };
    EXPECT_TRUE(begin_in(1, "importance", Party{1}));
    EXPECT_TRUE(begin_in(2, "replicate", Party{1}));
    EXPECT_FALSE(begin_in(3, "importance", Party{1}));
    EXPECT_TRUE(begin_in(4, "windowed", Party{1}));
    EXPECT_TRUE(begin_in(5, "importance", Party{2}));
    EXPECT_FALSE(begin_in(6, "importance", Party{2})) << "three of all guests";
    EXPECT_TRUE(begin_in(7, "importance", kOwnParty));
}

TEST_F(SamplerServiceGuests, LargeDatasetStillHasOneGuestSampler) {
    SamplerService tiny{
        test::kEmptyNode,
        kCount,
        contracts,
        SamplerService::Limits{.guest_sampler_samples = 1, .guests_sampler_samples = 1}};
    local::Begin begin;
    begin.contract = "importance";
    EXPECT_TRUE(tiny.begin(StreamId{1}, begin, {}, 1, Party{1}).has_value());
}

// The unread draws of all guests have one bound; a draw may take half of what is left of it.
TEST_F(SamplerServiceGuests, BoundsUnreadDrawsOfAllGuestsTogether) {
    SamplerService small{
        test::kEmptyNode, kCount, contracts, SamplerService::Limits{.guests_outstanding = 40}};
    const auto draws = [&](std::uint64_t stream, Party party) {
        local::Begin begin;
        begin.contract = "importance";
        begin.job = std::to_string(stream);
        EXPECT_TRUE(small.begin(StreamId{stream}, begin, {}, stream, party).has_value());
        std::size_t sum = 0;
        while (sum < kCount && small.draw(StreamId{stream}, {0, 1}).has_value()) {
            ++sum;
        }
        return sum;
    };
    std::size_t sum = 0;
    for (std::uint64_t stream = 1; stream <= 8; ++stream) {
        sum += draws(stream, Party{static_cast<std::uint8_t>(stream)});
    }
    EXPECT_LT(sum, 40U);
    EXPECT_EQ(draws(9, kOwnParty), kCount);
}

TEST_F(SamplerServiceGuests, BoundsConcurrentJobsOfAGuest) {
    ASSERT_TRUE(begin(StreamId{1}, "a", Party{1}).has_value());
    ASSERT_TRUE(begin(StreamId{2}, "b", Party{1}).has_value());
    EXPECT_EQ(begin(StreamId{3}, "c", Party{1}).error().code, ErrorCode::kResourceExhausted);
    EXPECT_TRUE(begin(StreamId{4}, "c", Party{2}).has_value());
    EXPECT_TRUE(begin(StreamId{5}, "own", kOwnParty).has_value());
}

TEST(GuestsScan, GuestsWindowedJobsDoNotShortenTheOwnPartysLookahead) {
    constexpr std::uint32_t kMany = 400;
    const auto foreseen = [](std::uint8_t guests) {
        Contracts contracts{kMany, 100};
        SamplerService service{test::kEmptyNode, kMany, contracts};
        local::Begin begin;
        begin.contract = "windowed";
        begin.batch = 4;
        for (std::uint8_t guest = 0; guest <= guests; ++guest) {
            begin.job = std::to_string(guest);
            const Party party{static_cast<std::uint8_t>(guests - guest)};
            EXPECT_TRUE(
                service.begin(StreamId{party.value()}, begin, {}, guest, party).has_value());
        }
        const StreamId own{kOwnParty.value()};
        EXPECT_TRUE(service.draw(own, {0, 60}).has_value());
        return service.new_plan(own, 0).value().samples;
    };
    EXPECT_GT(foreseen(0).size(), 60U);
    EXPECT_EQ(foreseen(8), foreseen(0));
}

}  // namespace
}  // namespace stoker::sidecar
