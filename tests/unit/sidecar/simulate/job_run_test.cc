#include "sidecar/simulate/job_run.h"

#include <gtest/gtest.h>

#include "sidecar/simulate/trainer_shuffle.h"

namespace stoker::simulate {
namespace {

using std::chrono::seconds;

// Answers every request after a fixed time.
class SlowNode final : public Node {
public:
    explicit SlowNode(Duration delay)
        : delay_(delay) {}

    void begin_epoch(const EpochStart& start, TimePoint) override { epochs.push_back(start.epoch); }

    void foresee(std::size_t, std::span<const SampleIndex>, EpochFigures&, TimePoint) override {}

    void expect(std::size_t, std::span<const SampleIndex> samples) override {
        planned.insert(planned.end(), samples.begin(), samples.end());
    }

    void request(std::size_t job, Batch& batch, EpochFigures&, TimePoint now) override {
        for (const Draw& draw : batch.draws) {
            drawn.push_back(draw.served);
        }
        ahead_least = std::min(ahead_least, planned.size() - drawn.size());
        batch.hits.assign(batch.draws.size(), false);
        answers_.push_back({job, batch.number, now + delay_});
        outstanding_most = std::max(outstanding_most, ++outstanding_);
    }

    void consume(std::size_t, const Batch&, EpochFigures&, TimePoint) override { --outstanding_; }

    [[nodiscard]] std::optional<TimePoint> next_event() const override { return std::nullopt; }

    void advance(TimePoint) override {}

    std::vector<Answer> take_answers() override { return std::exchange(answers_, {}); }

    std::vector<std::uint64_t> epochs;
    int outstanding_most = 0;
    std::vector<SampleIndex> planned;
    std::vector<SampleIndex> drawn;
    std::size_t ahead_least = 1000;

private:
    Duration delay_;
    std::vector<Answer> answers_;
    int outstanding_ = 0;
};

// 100 samples in batches of 10, one second of compute each.
JobRun::Setting setting(TrainerShuffle& sampler, std::uint32_t ahead) {
    JobRun::Setting setting;
    setting.sampler = &sampler;
    setting.samples = 100;
    setting.epochs = 2;
    setting.batch = 10;
    setting.ahead = ahead;
    setting.samples_per_second = 10;
    return setting;
}

JobFigures run_to_end(JobRun& run, Node& node) {
    while (const auto now = run.next_event()) {
        run.finish_batch(*now);
        run.go_on(*now);
        for (const auto& answer : node.take_answers()) {
            run.on_ready(answer.batch, answer.at);
        }
    }
    EXPECT_TRUE(run.is_finished());
    return run.figures();
}

TEST(JobRun, WaitsForEveryBatchThatIsNotAskedForAhead) {
    TrainerShuffle sampler{100, 1};
    SlowNode node{seconds{1}};
    JobRun run{setting(sampler, 0), node};
    const auto figures = run_to_end(run, node);
    ASSERT_EQ(figures.epochs.size(), 2U);
    EXPECT_EQ(figures.epochs[0].time, seconds{20});
    EXPECT_EQ(figures.epochs[0].waited, seconds{10});
    EXPECT_EQ(node.outstanding_most, 1);
}

TEST(JobRun, HidesAnOriginThatIsFastEnoughBehindCompute) {
    TrainerShuffle sampler{100, 1};
    SlowNode node{seconds{2}};
    JobRun run{setting(sampler, 2), node};
    const auto figures = run_to_end(run, node);
    EXPECT_EQ(figures.epochs[0].time, seconds{12});
    EXPECT_EQ(figures.epochs[0].waited, seconds{2}) << "only before the first batch";
    EXPECT_EQ(node.outstanding_most, 3);
}

TEST(JobRun, TellsThePlanOnceAndAheadOfEveryDraw) {
    TrainerShuffle sampler{100, 1};
    SlowNode node{seconds{1}};
    auto planning = setting(sampler, 2);
    planning.plan = 40;
    JobRun run{planning, node};
    run_to_end(run, node);
    EXPECT_EQ(node.drawn.size(), 200U);
    EXPECT_EQ(node.planned, node.drawn);
    EXPECT_EQ(node.ahead_least, 0U) << "at the end of an epoch";
}

TEST(JobRun, EndsAnEpochBeforeTheNextBegins) {
    TrainerShuffle sampler{100, 1};
    SlowNode node{seconds{1}};
    JobRun run{setting(sampler, 50), node};
    const auto figures = run_to_end(run, node);
    EXPECT_EQ(node.epochs, (std::vector<std::uint64_t>{0, 1}));
    for (const EpochFigures& epoch : figures.epochs) {
        EXPECT_TRUE(epoch.complete);
        EXPECT_EQ(epoch.requested, 100U);
        EXPECT_EQ(epoch.distinct, 100U);
        EXPECT_EQ(epoch.repeated, 0U);
    }
    EXPECT_EQ(node.outstanding_most, 10);
}

TEST(JobRun, ReadsTheLastShortBatch) {
    TrainerShuffle sampler{95, 1};
    SlowNode node{seconds{0}};
    auto shape = setting(sampler, 1);
    shape.samples = 95;
    JobRun run{shape, node};
    EXPECT_EQ(run_to_end(run, node).epochs[1].requested, 95U);
}

}  // namespace
}  // namespace stoker::simulate
