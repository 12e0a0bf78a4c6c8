#include "sidecar/simulate/virtual_node.h"

#include <gmock/gmock.h>

#include "common/domain/segment_format.h"

namespace stoker::simulate {
namespace {

using sidecar::ConnectionId;
using sidecar::FetchOutcome;
using sidecar::SampleState;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr std::uint64_t kRecord = domain::record_bytes(100);
constexpr ConnectionId kTrainer{0};

class OneRefill final : public Refiller {
public:
    void take_refills(std::vector<SampleIndex>& samples) override {
        samples = std::exchange(wanted, {});
    }

    std::vector<SampleIndex> wanted;
};

// One job without a plan; the origin answers after one second.
class VirtualNodeTest : public testing::Test {
protected:
    void make(std::uint64_t residents, Refiller* refiller = nullptr) {
        node.emplace(VirtualNode::Setting{
            sizes,
            Bytes{residents * kRecord},
            Bytes{},
            {seconds{1}, gib(1), 2},
            nullptr,
            refiller});
        node->join(0, figures);
        node->engine().fetch().on_connect(kTrainer, std::nullopt);
    }

    void demand(const std::vector<SampleIndex>& samples) {
        node->apply(node->engine().fetch().on_fetch(kTrainer, ++requests, samples, now), 0, now);
    }

    sidecar::ReadCounts read(const std::vector<SampleIndex>& samples) {
        sidecar::ReadCounts counts;
        node->apply(
            node->engine().on_consumed(kTrainer, std::nullopt, 0, samples, now, counts), 0, now);
        return counts;
    }

    void wait(Duration time) {
        const TimePoint end = now + time;
        while (node->next_event().value_or(end) < end) {
            now = *node->next_event();
            node->advance(now);
        }
        now = end;
    }

    SampleState state(SampleIndex sample) { return node->engine().fetch().sample(sample).state; }

    std::vector<std::uint64_t> sizes = std::vector<std::uint64_t>(10, 100);
    std::optional<VirtualNode> node;
    EpochFigures figures;
    TimePoint now{};
    std::uint64_t requests = 0;
};

TEST_F(VirtualNodeTest, FetchTakesTheOriginsTimeAndCountsForItsJob) {
    make(4);
    demand({3, 4, 5});
    wait(std::chrono::milliseconds{500});
    EXPECT_EQ(state(3), SampleState::kFetching);
    wait(seconds{1});
    EXPECT_EQ(state(4), SampleState::kStored);
    EXPECT_NE(state(5), SampleState::kStored) << "two requests are in flight";
    EXPECT_TRUE(node->take_replies().empty());
    wait(seconds{1});
    const auto replies = node->take_replies();
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_THAT(replies[0].outcomes, testing::Each(FetchOutcome::kReady));
    EXPECT_EQ(figures.origin_samples, 3U);
    EXPECT_EQ(figures.origin_bytes, Bytes{300});
    EXPECT_EQ(read({3}).fetched_samples, 1U);
}

TEST_F(VirtualNodeTest, ReadsSamplesWithoutRoomFromTheOrigin) {
    make(1);
    demand({3, 4});
    wait(seconds{2});
    const auto replies = node->take_replies();
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_THAT(
        replies[0].outcomes, ElementsAre(FetchOutcome::kReady, FetchOutcome::kReadAtOrigin));
    EXPECT_GE(node->read_at_origin(4, 0, now), now + seconds{1});
    EXPECT_EQ(figures.origin_samples, 2U);
}

TEST_F(VirtualNodeTest, FirstReadOfASampleFetchedAsARefillIsAHit) {
    OneRefill refiller;
    make(4, &refiller);
    demand({3});
    wait(seconds{2});
    refiller.wanted = {3, 4};
    node->refill(0, now);
    wait(seconds{2});
    EXPECT_EQ(figures.refill_samples, 1U) << "the other one is here";
    EXPECT_EQ(figures.origin_samples, 2U);
    EXPECT_EQ(read({4}).hit_samples, 1U);
}

TEST_F(VirtualNodeTest, FetchesOfALeavingJobCountForAnother) {
    make(4);
    EpochFigures other;
    node->join(1, other);
    node->leave(0);
    demand({3});
    EXPECT_EQ(other.origin_samples, 1U);
    EXPECT_EQ(figures.origin_samples, 0U);
}

}  // namespace
}  // namespace stoker::simulate
