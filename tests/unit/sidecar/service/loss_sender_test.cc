#include "sidecar/service/loss_sender.h"

#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "sidecar/core/sampling/loss_code.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/loss_intake.h"
#include "tests/support/manual_clock.h"

namespace stoker::sidecar {
namespace {

using domain::SampleIndex;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kSamples = 100'000;

class LossSenderTest : public ::testing::Test {
protected:
    void note(std::size_t count, std::uint64_t epoch = 0, const std::string& job = "j") {
        std::vector<SampleIndex> samples(count);
        std::iota(samples.begin(), samples.end(), 0U);
        sender.note(job, epoch, samples, std::vector<float>(count, 1));
    }

    void pass() {
        clock.advance(LossSender::kInterval);
        loop.step(Duration{});
    }

    [[nodiscard]] std::size_t entries() const {
        std::size_t sum = 0;
        for (const PeerLosses& losses : sent) {
            for (const PeerLosses::Report& report : losses.reports) {
                sum += report.samples.size();
            }
        }
        return sum;
    }

    stoker::testing::ManualClock clock;
    EventLoop loop{clock};
    std::vector<PeerLosses> sent;
    LossSender sender{loop, kSamples, [this](const PeerLosses& losses) { sent.push_back(losses); }};
};

TEST_F(LossSenderTest, ReportsOfAnIntervalShareAMessage) {
    note(64);
    note(64);
    EXPECT_THAT(sent, IsEmpty());
    pass();
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].job, "j");
    EXPECT_THAT(sent[0].reports, ElementsAre(sent[0].reports[0], sent[0].reports[0]));
    EXPECT_EQ(sent[0].reports[0].codes[5], LossCode::code_of(1));
    note(3);
    pass();
    EXPECT_THAT(sent, SizeIs(2)) << "a message is sent once";
}

TEST_F(LossSenderTest, EpochsAndJobsHaveMessagesOfTheirOwn) {
    note(2, 4);
    note(2, 5);
    note(2, 4, "other");
    note(2, 5);
    pass();
    ASSERT_THAT(sent, SizeIs(3));
    EXPECT_THAT(sent[1].reports, SizeIs(2));
    EXPECT_EQ(sent[1].epoch, 5U);
}

TEST_F(LossSenderTest, MessagesFitIntoAFrameHead) {
    note(PeerLosses::kEntriesMax - 1);
    note(2);
    note(2 * PeerLosses::kEntriesMax + 7);
    pass();
    EXPECT_EQ(entries(), 3 * PeerLosses::kEntriesMax + 8);
    for (const PeerLosses& losses : sent) {
        EXPECT_TRUE(decode_peer_head(encode_peer_head(losses)).has_value());
    }
    EXPECT_THAT(sent[1].reports[0].samples, SizeIs(2)) << "a report stays whole";
}

TEST_F(LossSenderTest, LossesBeyondTheBoundOfAnIntervalAreDropped) {
    note(LossSender::kEntriesMax - 10);
    note(20);
    note(20);
    pass();
    EXPECT_EQ(entries(), LossSender::kEntriesMax);
    note(20);
    pass();
    EXPECT_EQ(entries(), LossSender::kEntriesMax + 20);
}

TEST_F(LossSenderTest, UnusableLossesAreLeftOut) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    sender.note(
        "j",
        0,
        std::vector<SampleIndex>{1, 2, 3, kSamples},
        std::vector{kNan, kInfinity, 2.0F, 1.0F});
    sender.note("j", 0, std::vector<SampleIndex>{1, 2}, std::vector{1.0F});
    sender.note("j", 0, std::vector<SampleIndex>{1}, std::vector{kNan});
    sender.note(
        std::string(PeerHello::kTextMax + 1, 'j'),
        0,
        std::vector<SampleIndex>{1},
        std::vector{1.0F});
    pass();
    ASSERT_THAT(sent, SizeIs(1));
    ASSERT_THAT(sent[0].reports, SizeIs(1));
    EXPECT_THAT(sent[0].reports[0].samples, ElementsAre(3));
}

TEST(LossIntake, TakesThreeLossesPerSampleInAnEpoch) {
    LossIntake intake;
    EXPECT_TRUE(intake.admit("j", 4, 200, 100));
    EXPECT_TRUE(intake.admit("j", 4, 100, 100));
    EXPECT_FALSE(intake.admit("j", 4, 1, 100));
    EXPECT_TRUE(intake.admit("other", 4, 300, 100));
    EXPECT_TRUE(intake.admit("j", 5, 300, 100));
    EXPECT_TRUE(intake.admit("j", 0, 300, 100)) << "our ranks have begun again";
    EXPECT_FALSE(intake.admit("j", 0, 1, 100));
}

}  // namespace
}  // namespace stoker::sidecar
