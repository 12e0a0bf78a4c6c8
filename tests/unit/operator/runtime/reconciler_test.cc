#include "operator/runtime/reconciler.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using test::eventually;

const ObjectKey kA{"d", "a"};

class Workers {
public:
    Workers(Reconciler& reconciler, int count) {
        for (int i = 0; i < count; ++i) {
            threads_.emplace_back(
                [&reconciler](const std::stop_token& stop) { reconciler.work(stop); });
        }
    }

private:
    std::vector<std::jthread> threads_;
};

TEST(Reconciler, WakesAWaitingWorkerForKeysAndForAStop) {
    const SystemClock clock;
    Reconciler reconciler(
        "test", [](const ObjectKey&) -> Result<Reconciled> { return Reconciled{}; }, clock);
    std::jthread worker([&](const std::stop_token& stop) { reconciler.work(stop); });
    reconciler.add(kA);
    EXPECT_TRUE(eventually([&] { return reconciler.counts().successes == 1; }));
    reconciler.add({"d", "b"});
    EXPECT_TRUE(eventually([&] { return reconciler.counts().successes == 2; }));
    worker.request_stop();
    worker.join();
}

TEST(Reconciler, ObservesWaitingAndProcessingTimes) {
    testing::ManualClock clock;
    std::stop_source stop;
    const auto queued = std::make_shared<metrics::Histogram>(std::vector<double>{1});
    const auto worked = std::make_shared<metrics::Histogram>(std::vector<double>{1});
    Duration unfinished{};
    Reconciler* self = nullptr;
    Reconciler reconciler(
        "test",
        [&](const ObjectKey&) -> Result<Reconciled> {
            clock.advance(std::chrono::seconds{5});
            unfinished = self->queue_counts().unfinished;
            stop.request_stop();
            return Reconciled{};
        },
        clock);
    self = &reconciler;
    reconciler.observe({queued, worked});
    reconciler.add(kA);
    clock.advance(std::chrono::seconds{3});
    reconciler.work(stop.get_token());
    EXPECT_EQ(unfinished, std::chrono::seconds{5});
    EXPECT_EQ(reconciler.queue_counts().unfinished, Duration::zero());
    EXPECT_DOUBLE_EQ(queued->sum(), 3);
    EXPECT_DOUBLE_EQ(worked->sum(), 5);
}

TEST(Reconciler, RetriesErrorsUntilSuccess) {
    const SystemClock clock;
    std::atomic<int> calls{0};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey&) -> Result<Reconciled> {
            if (++calls < 4) {
                return fail(ErrorCode::kUnavailable, "not yet");
            }
            return Reconciled{};
        },
        clock);
    const Workers workers(reconciler, 2);
    reconciler.add(kA);
    EXPECT_TRUE(eventually([&] { return reconciler.counts().successes == 1; }));
    EXPECT_EQ(calls, 4);
    EXPECT_EQ(reconciler.counts().errors, 3U);
}

TEST(Reconciler, DoesNotRetryTerminalErrors) {
    const SystemClock clock;
    std::atomic<int> calls{0};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey& key) -> Result<Reconciled> {
            ++calls;
            return fail(key == kA ? ErrorCode::kInvalidArgument : ErrorCode::kGone, "never");
        },
        clock);
    const Workers workers(reconciler, 1);
    reconciler.add(kA);
    reconciler.add({"d", "b"});
    EXPECT_TRUE(eventually([&] { return reconciler.counts().terminal == 2; }));
    EXPECT_EQ(reconciler.queue_counts().delayed, 0U);
    EXPECT_EQ(calls, 2);
}

TEST(Reconciler, SurvivesExceptionsAndCountsThem) {
    const SystemClock clock;
    std::atomic<int> calls{0};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey&) -> Result<Reconciled> {
            if (++calls == 1) {
                throw std::runtime_error("boom");
            }
            if (calls == 2) {
                throw 5;
            }
            return Reconciled{};
        },
        clock);
    const Workers workers(reconciler, 1);
    reconciler.add(kA);
    EXPECT_TRUE(eventually([&] { return reconciler.counts().successes == 1; }));
    EXPECT_EQ(reconciler.counts().exceptions, 2U);
}

TEST(Reconciler, CallsAgainAfterTheRequestedTime) {
    const SystemClock clock;
    std::atomic<int> calls{0};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey&) -> Result<Reconciled> {
            return Reconciled{
                ++calls < 3 ? std::optional<Duration>(milliseconds{5}) : std::nullopt};
        },
        clock);
    const Workers workers(reconciler, 1);
    reconciler.add(kA);
    EXPECT_TRUE(eventually([&] { return calls == 3; }));
}

TEST(Reconciler, RunsOneCallPerKeyAndDifferentKeysInParallel) {
    const SystemClock clock;
    std::mutex mutex;
    std::map<ObjectKey, int> inside;
    int most_keys = 0;
    bool twice = false;
    std::atomic<int> calls{0};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey& key) -> Result<Reconciled> {
            {
                const std::lock_guard lock(mutex);
                twice = twice || ++inside[key] > 1;
                most_keys = std::max(most_keys, static_cast<int>(inside.size()));
            }
            std::this_thread::sleep_for(milliseconds{1});
            const std::lock_guard lock(mutex);
            inside.erase(key);
            ++calls;
            return Reconciled{};
        },
        clock);
    const Workers workers(reconciler, 4);
    for (int i = 0; i < 300; ++i) {
        reconciler.add({"d", fmt::format("k{}", i % 3)});
        std::this_thread::yield();
    }
    EXPECT_TRUE(eventually([&] {
        const auto counts = reconciler.queue_counts();
        return counts.waiting + counts.processing == 0 && calls > 0;
    }));
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(twice);
    EXPECT_GT(most_keys, 1);
}

TEST(Reconciler, DrainLetsTheCurrentCallFinish) {
    const SystemClock clock;
    std::atomic<bool> inside{false};
    std::atomic<bool> let_go{false};
    Reconciler reconciler(
        "test",
        [&](const ObjectKey&) -> Result<Reconciled> {
            inside = true;
            eventually([&] { return let_go.load(); });
            return Reconciled{milliseconds{1}};
        },
        clock);
    const Workers workers(reconciler, 1);
    reconciler.add(kA);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    EXPECT_FALSE(reconciler.drain(clock.now() + milliseconds{20}));
    let_go = true;
    EXPECT_TRUE(reconciler.drain(clock.now() + std::chrono::seconds{30}));
    EXPECT_EQ(reconciler.counts().successes, 1U)
        << "the reconciler asked for another call, but the queue takes no new keys";
    reconciler.work({});  // returns: the queue is drained
}

TEST(Reconciler, StepsThroughKeysWithoutAWorker) {
    testing::ManualClock clock;
    std::vector<ObjectKey> seen;
    Reconciler reconciler(
        "test",
        [&](const ObjectKey& key) -> Result<Reconciled> {
            seen.push_back(key);
            return key == kA ? Reconciled{std::chrono::seconds{5}} : Reconciled{};
        },
        clock);
    EXPECT_FALSE(reconciler.step());
    EXPECT_EQ(reconciler.next_due(), std::nullopt);
    reconciler.add(kA);
    reconciler.add({"d", "b"});
    EXPECT_EQ(reconciler.next_due(), clock.now());
    EXPECT_TRUE(reconciler.step());
    EXPECT_EQ(seen, std::vector{kA});
    EXPECT_TRUE(reconciler.step());
    EXPECT_FALSE(reconciler.step());
    EXPECT_EQ(reconciler.next_due(), clock.now() + std::chrono::seconds{5});
    clock.advance(std::chrono::seconds{5});
    EXPECT_TRUE(reconciler.step());
    EXPECT_EQ(seen.back(), kA);
    EXPECT_EQ(reconciler.counts().successes, 3U);
}

}  // namespace
}  // namespace stoker::control
