// Jobs of guests beside those of the dataset's own namespace.
#include <gtest/gtest.h>

#include "sidecar/service/contracts.h"
#include "sidecar/service/sampling_desk.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 20;

class GuestsDesk : public testing::Test {
protected:
    Result<local::Begun> begin(StreamId stream, const std::string& job, Party party) {
        local::Begin begin;
        begin.contract = "importance";
        begin.job = job;
        begin.batch = 4;
        return desk.begin(stream, begin, {}, party.value(), party);
    }

    // The job learns, and nobody draws from it afterwards.
    bool begin_and_leave(const std::string& job, Party party) {
        const bool begun = begin(StreamId{99}, job, party).has_value();
        desk.on_losses(StreamId{99}, {0, {1, 2}, {0.5F, 0.7F}});
        desk.leave(StreamId{99});
        return begun;
    }

    Contracts contracts{kCount, 10};
    SamplingDesk desk{
        kCount,
        contracts,
        SamplingDesk::Limits{.samplers = 3, .guest_samplers = 2, .guests_samplers = 3}};
};

TEST_F(GuestsDesk, AThousandJobsOfAGuestTakeNoPlaceOfOtherParties) {
    ASSERT_TRUE(begin_and_leave("own", kOwnParty));
    ASSERT_TRUE(begin_and_leave("other", Party{2}));
    for (int job = 0; job < 1000; ++job) {
        ASSERT_TRUE(begin_and_leave("job-" + std::to_string(job), Party{1}));
    }
    EXPECT_EQ(desk.job_count(), 4U);
    EXPECT_EQ(begin(StreamId{1}, "own", kOwnParty)->losses, 2U) << "it lost what it had learnt";
    EXPECT_EQ(begin(StreamId{2}, "other", Party{2})->losses, 2U);
}

TEST_F(GuestsDesk, AGuestHasSoManyJobsAtATime) {
    ASSERT_TRUE(begin(StreamId{1}, "a", Party{1}).has_value());
    ASSERT_TRUE(begin(StreamId{2}, "b", Party{1}).has_value());
    EXPECT_EQ(begin(StreamId{3}, "c", Party{1}).error().code, ErrorCode::kResourceExhausted);
    EXPECT_TRUE(begin(StreamId{4}, "c", Party{2}).has_value());
    EXPECT_TRUE(begin(StreamId{5}, "own", kOwnParty).has_value());
}

}  // namespace
}  // namespace stoker::sidecar
