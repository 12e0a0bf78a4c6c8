// The window of a DatasetEngine under jobs whose loaders draw far ahead.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/segment_format.h"
#include "sidecar/engine/dataset_engine.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kSamples = 400;
constexpr Bytes kRecord{domain::record_bytes(100)};
constexpr TimePoint kNow{};

// Jobs of one rank each that draw and read when the test tells them; fetches arrive at once.
class Node {
public:
    // `granted_until`: TimePoint{} if the operator has not sent a grant yet.
    explicit Node(
        std::uint64_t granted,
        std::uint64_t window = 20,
        std::optional<TimePoint> granted_until = {})
        : granted_(granted),
          engine_(SampleSizes{sizes_}, limits(window), {kRecord * granted, granted_until}) {}

    static EngineLimits limits(std::uint64_t window) {
        EngineLimits limits;
        limits.window = kRecord * window;
        return limits;
    }

    void begin(std::uint64_t job, Party party = kOwnParty) {
        Job& begun = jobs_[job];
        if (!begun.connected) {
            engine_.fetch().on_connect(ConnectionId{job}, StreamId{job}, party);
            begun.connected = true;
        }
        local::Begin begin;
        begin.contract = "windowed";
        begin.job = "job" + std::to_string(job);
        begin.epoch = begun.epoch;
        Effects effects;
        ASSERT_TRUE(
            engine_.begin({ConnectionId{job}, StreamId{job}, 0, party}, begin, {}, kNow, effects)
                .has_value());
        apply(effects);
    }

    void draw(std::uint64_t job, std::uint32_t count) {
        Effects effects;
        const auto drawn = engine_.draw(
            ConnectionId{job}, StreamId{job}, {jobs_[job].epoch, count}, kNow, effects);
        ASSERT_TRUE(drawn.has_value());
        for (const std::uint64_t sample : drawn->served) {
            jobs_[job].unread.push_back(static_cast<SampleIndex>(sample));
        }
        jobs_[job].has_ended = drawn->ended;
        apply(effects);
    }

    // Requests and reads the oldest unread draws.
    void read(std::uint64_t job, std::size_t count) {
        std::deque<SampleIndex>& unread = jobs_[job].unread;
        const auto end =
            unread.begin() + static_cast<std::ptrdiff_t>(std::min(count, unread.size()));
        const std::vector<SampleIndex> samples(unread.begin(), end);
        unread.erase(unread.begin(), end);
        if (samples.empty()) {
            return;
        }
        const std::uint64_t answers = answers_;
        apply(engine_.fetch().on_fetch(ConnectionId{job}, 1, samples, kNow));
        EXPECT_EQ(answers_, answers + 1) << "every request is answered";
        ReadCounts counts;
        apply(engine_.on_consumed(
            ConnectionId{job}, StreamId{job}, jobs_[job].epoch, samples, kNow, counts));
        apply(engine_.fetch().on_fetch(ConnectionId{job}, 2, {}, kNow));
    }

    void end(std::uint64_t job) {
        engine_.leave(StreamId{job});
        apply(engine_.fetch().on_disconnect(ConnectionId{job}, kNow));
        jobs_.erase(job);
    }

    void grant(std::uint64_t records) {
        granted_ = records;
        apply(engine_.fetch().on_grant({kRecord * records, {}}, kNow));
    }

    [[nodiscard]] Bytes borrowed() const {
        return std::as_const(engine_).fetch().window() - kRecord * 20;
    }

    // Number of requested samples whose reply said that they were not ready.
    [[nodiscard]] std::ptrdiff_t refused() const { return refused_; }

    // Requests the job's unread draws: the window keeps them until the job reads them.
    void hold(std::uint64_t job) {
        const std::deque<SampleIndex>& unread = jobs_[job].unread;
        apply(engine_.fetch().on_fetch(ConnectionId{job}, 3, {unread.begin(), unread.end()}, kNow));
    }

    [[nodiscard]] const ByteAccount& account() { return engine_.fetch().account(); }

    struct Job {
        bool connected = false;
        bool has_ended = false;
        std::uint64_t epoch = 0;
        std::deque<SampleIndex> unread;
    };

    std::map<std::uint64_t, Job>& jobs() { return jobs_; }

    [[nodiscard]] DatasetEngine& engine() { return engine_; }

private:
    void apply(Effects effects) {
        std::deque<SampleIndex> coming;
        for (;;) {
            answers_ += effects.replies.size();
            for (const FetchReply& reply : effects.replies) {
                refused_ += std::ranges::count_if(reply.outcomes, [](FetchOutcome outcome) {
                    return outcome != FetchOutcome::kReady;
                });
            }
            for (const StartFetch& fetch : effects.fetches) {
                coming.push_back(fetch.sample);
            }
            EXPECT_LE(account().resident + account().window, kRecord * (granted_ + 20));
            if (coming.empty()) {
                return;
            }
            effects = engine_.fetch().on_stored(coming.front(), kNow);
            coming.pop_front();
        }
    }

    std::vector<std::uint64_t> sizes_ = std::vector<std::uint64_t>(kSamples, 100);
    std::uint64_t granted_;
    DatasetEngine engine_;
    std::map<std::uint64_t, Job> jobs_;
    std::uint64_t answers_ = 0;
    std::ptrdiff_t refused_ = 0;
};

TEST(WindowBorrowing, BorrowsRoomForTheUnreadDrawsOfTwoJobs) {
    Node node{100};
    node.begin(1);
    node.begin(2);
    EXPECT_EQ(node.borrowed(), Bytes::zero());
    node.draw(1, 60);
    EXPECT_GE(node.borrowed(), kRecord * 40) << "a fifth or so of the draws are residents";
    EXPECT_LE(node.borrowed(), kRecord * 65);
    EXPECT_EQ(node.engine().window_lack(), Bytes::zero());
}

TEST(WindowBorrowing, LookaheadIsAsLongIfTheGrantComesAfterTheStart) {
    Node early{100};
    Node late{0};
    for (Node* node : {&early, &late}) {
        node->begin(1);
        node->begin(2);
        node->draw(1, 60);
        node->grant(100);
        node->draw(2, 1);
    }
    EXPECT_GE(late.borrowed(), early.borrowed());
    const auto stored = [](Node& node) { return node.account().resident + node.account().window; };
    EXPECT_GE(stored(late) + kRecord * 5, stored(early)) << "lookaheads are as long";
}

TEST(WindowBorrowing, NothingIsBorrowedBeforeTheFirstGrant) {
    Node node{100};
    node.engine().fetch().on_grant({Bytes::unlimited(), TimePoint{}}, kNow);
    node.begin(1);
    node.begin(2);
    node.draw(1, 60);
    EXPECT_EQ(node.borrowed(), Bytes::zero());
    node.grant(100);
    node.draw(1, 1);
    EXPECT_GT(node.borrowed(), Bytes::zero());
}

TEST(WindowBorrowing, HeldResidentsLeaveRoomForTheStandardWindow) {
    Node node{100};
    node.begin(1);
    node.begin(2);
    node.draw(1, 60);
    node.hold(1);
    node.grant(5);
    ASSERT_GT(node.account().doomed, node.account().window);
    node.draw(2, 10);
    node.read(2, 10);
    EXPECT_EQ(node.refused(), 0);
}

TEST(WindowBorrowing, LookaheadsAloneBorrowNothing) {
    Node node{100};
    node.begin(1);
    node.begin(2);
    for (int i = 0; i < 30; ++i) {
        for (const std::uint64_t job : {1U, 2U}) {
            node.draw(job, 1);
            node.read(job, 1);
            EXPECT_EQ(node.borrowed(), Bytes::zero());
        }
    }
}

TEST(WindowBorrowing, JobAloneBorrowsNothing) {
    Node node{100};
    node.begin(1);
    node.draw(1, 200);
    EXPECT_EQ(node.borrowed(), Bytes::zero());
    EXPECT_EQ(node.engine().window_lack(), Bytes::zero());
}

TEST(WindowBorrowing, GuestsBorrowNothing) {
    Node node{100};
    node.begin(1);
    node.begin(2, Party{1});
    node.begin(3, Party{1});
    node.draw(1, 60);
    node.draw(2, 60);
    node.draw(3, 60);
    EXPECT_EQ(node.borrowed(), Bytes::zero());
}

TEST(WindowBorrowing, ReturnsAllWhenOneJobIsLeft) {
    Node node{100};
    node.begin(1);
    node.begin(2);
    node.draw(1, 60);
    node.end(1);
    EXPECT_EQ(node.borrowed(), Bytes::zero());
    while (!node.jobs()[2].has_ended) {
        node.draw(2, 20);
        node.read(2, 20);
    }
    EXPECT_EQ(node.account().resident, kRecord * 100) << "residents come back";
}

TEST(WindowBorrowing, ReportsMissingWindowBytesIfTheGrantIsSmall) {
    Node node{10};
    node.begin(1);
    node.begin(2);
    node.draw(1, 200);
    EXPECT_EQ(node.borrowed(), kRecord * 10);
    EXPECT_EQ(node.engine().window_lack(), node.engine().window_needed() - kRecord * 30);
    EXPECT_GT(node.engine().window_lack(), kRecord * 100);
}

TEST(WindowBorrowing, NeedsRoomForDrawsFromBeforeTheSecondJobBegan) {
    Node node{10};
    node.begin(1);
    node.draw(1, 200);
    EXPECT_EQ(node.engine().window_needed(), Bytes::zero());
    node.begin(2);
    EXPECT_GT(node.engine().window_needed(), kRecord * 100);
}

TEST(WindowBorrowing, CountsReadsMadeWhileOneJobIsAlone) {
    Node node{10};
    node.begin(1);
    node.draw(1, 200);
    node.begin(2);
    node.end(2);
    node.read(1, 200);
    node.begin(2);
    EXPECT_LE(node.engine().window_needed(), kRecord * 10) << "lookaheads only";
}

TEST(WindowBorrowing, ReportsNoMissingBytesBeforeTheFirstGrant) {
    Node node{0, 20, TimePoint{}};
    node.begin(1);
    node.begin(2);
    node.draw(1, 200);
    EXPECT_EQ(node.engine().window_lack(), Bytes::zero());
    EXPECT_EQ(node.engine().window_needed(), Bytes::zero());
    node.grant(10);
    node.draw(2, 1);
    EXPECT_EQ(node.engine().window_lack(), node.engine().window_needed() - kRecord * 30);
    EXPECT_GT(node.engine().window_lack(), kRecord * 100);
}

// After each event: residents and window stay within grant and window budget, every request is
// answered, and every epoch has each sample once.
TEST(WindowBorrowing, KeepsTheBudgetUnderRandomJobsAndGrants) {
    Prng prng{test::seed()};
    Node node{prng.below(200)};
    for (int step = 0; step < 3000; ++step) {
        const std::uint64_t job = 1 + prng.below(4);
        Node::Job& it = node.jobs()[job];
        if (!it.connected) {
            node.begin(job, job == 4 ? Party{1} : kOwnParty);
        } else if (it.has_ended && it.unread.empty()) {
            ++it.epoch;
            it.has_ended = false;
            node.begin(job);
        } else if (prng.below(100) == 0) {
            node.end(job);
        } else if (prng.below(50) == 0) {
            node.grant(prng.below(200));
        } else if (!it.has_ended && prng.below(2) == 0) {
            node.draw(job, 1 + static_cast<std::uint32_t>(prng.below(60)));
        } else {
            node.read(job, 1 + prng.below(60));
        }
        ASSERT_FALSE(HasFailure()) << "step " << step;
    }
}

}  // namespace
}  // namespace stoker::sidecar
