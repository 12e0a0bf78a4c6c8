#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/runtime/reconciler.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"
#include "tests/support/test_seed.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours{1}};
const ObjectKey kA{"d", "a"};
const ObjectKey kB{"d", "b"};

TEST(WorkQueue, TenEventsAreOneReconciliation) {
    WorkQueue queue;
    for (int i = 0; i < 10; ++i) {
        queue.add(kA, kStart);
    }
    EXPECT_EQ(queue.pop(kStart), kA);
    EXPECT_EQ(queue.pop(kStart), std::nullopt);
    queue.done(kA);
    EXPECT_EQ(queue.pop(kStart), std::nullopt);
}

TEST(WorkQueue, NormalKeysOvertakeBackgroundKeys) {
    WorkQueue queue;
    for (int i = 0; i < 1000; ++i) {
        queue.add({"d", std::to_string(i)}, kStart, Priority::kBackground);
    }
    queue.add(kA, kStart);
    queue.add(kB, kStart);
    EXPECT_EQ(queue.counts(kStart).waiting, 1002U);
    EXPECT_EQ(queue.counts(kStart).background, 1000U);
    EXPECT_EQ(queue.pop(kStart), kA);
    EXPECT_EQ(queue.pop(kStart), kB);
    EXPECT_EQ(queue.pop(kStart), (ObjectKey{"d", "0"}));
}

TEST(WorkQueue, TheHigherPriorityOfAKeyCounts) {
    WorkQueue queue;
    queue.add(kA, kStart, Priority::kBackground);
    queue.add(kB, kStart, Priority::kBackground);
    queue.add(kB, kStart);
    queue.add(kB, kStart, Priority::kBackground);
    EXPECT_EQ(queue.pop(kStart), kB);
    EXPECT_EQ(queue.pop(kStart), kA);
    EXPECT_FALSE(queue.has_ready());
    EXPECT_EQ(queue.counts(kStart).adds, 2U);
}

TEST(WorkQueue, EveryTenthKeyTakenIsABackgroundKey) {
    WorkQueue queue;
    queue.add(kA, kStart, Priority::kBackground);
    std::vector<ObjectKey> order;
    for (int i = 0; i < 10; ++i) {
        queue.add({"d", std::to_string(i)}, kStart);
    }
    for (int i = 0; i < 11; ++i) {
        order.push_back(*queue.pop(kStart));
    }
    EXPECT_EQ(order[9], kA);
}

TEST(WorkQueue, KeepsThePriorityOfAKeyThatRisesDuringWork) {
    WorkQueue queue;
    queue.add(kA, kStart, Priority::kBackground);
    ASSERT_EQ(queue.pop(kStart), kA);
    EXPECT_EQ(queue.priority_of(kA), Priority::kBackground);
    queue.add(kA, kStart, Priority::kBackground);
    queue.add(kA, kStart);
    queue.add(kB, kStart, Priority::kBackground);
    queue.done(kA);
    EXPECT_EQ(queue.pop(kStart), kA);
    EXPECT_EQ(queue.priority_of(kA), Priority::kNormal);
}

TEST(WorkQueue, DelayedKeysKeepTheirPriority) {
    WorkQueue queue;
    queue.add_after(kA, kStart + seconds{1}, kStart, Priority::kBackground);
    queue.add_after(kB, kStart + seconds{1}, kStart);
    EXPECT_EQ(queue.pop(kStart + seconds{1}), kB);
    EXPECT_EQ(queue.pop(kStart + seconds{1}), kA);
}

TEST(WorkQueue, EventDuringWorkIsHandledAfterwards) {
    WorkQueue queue;
    queue.add(kA, kStart);
    ASSERT_EQ(queue.pop(kStart), kA);
    queue.add(kA, kStart);
    EXPECT_EQ(queue.pop(kStart), std::nullopt) << "one key is in one pair of hands";
    queue.done(kA);
    EXPECT_EQ(queue.pop(kStart), kA);
}

TEST(WorkQueue, PopsKeysInTheOrderOfTheirFirstAdd) {
    WorkQueue queue;
    queue.add(kB, kStart);
    queue.add(kA, kStart);
    queue.add(kB, kStart);
    EXPECT_EQ(queue.pop(kStart), kB);
    EXPECT_EQ(queue.pop(kStart), kA);
    EXPECT_EQ(queue.pop(kStart), std::nullopt);
}

TEST(WorkQueue, EarliestDueTimeCounts) {
    WorkQueue queue;
    queue.add_after(kA, kStart + seconds{10}, kStart);
    queue.add_after(kA, kStart + seconds{5}, kStart);
    queue.add_after(kA, kStart + seconds{20}, kStart);
    EXPECT_EQ(queue.next_due(), kStart + seconds{5});
    EXPECT_EQ(queue.pop(kStart + milliseconds{4999}), std::nullopt);
    EXPECT_EQ(queue.pop(kStart + seconds{5}), kA);
    queue.done(kA);
    EXPECT_EQ(queue.pop(kStart + seconds{60}), std::nullopt) << "the later due times are gone";
}

TEST(WorkQueue, FailuresDoubleTheWaitUpToTheCap) {
    WorkQueueOptions options;
    options.retries_per_second = 0;  // only the key's own back-off
    WorkQueue queue(options);
    TimePoint now = kStart;
    Duration want = milliseconds{5};
    for (int failure = 0; failure < 100; ++failure) {
        queue.add_rate_limited(kA, now);
        EXPECT_EQ(*queue.next_due() - now, std::min<Duration>(want, seconds{1000}));
        now = *queue.next_due();
        ASSERT_EQ(queue.pop(now), kA);
        queue.done(kA);
        want = std::min<Duration>(2 * want, seconds{1000});
    }
    queue.forget(kA);
    queue.add_rate_limited(kA, now);
    EXPECT_EQ(*queue.next_due() - now, milliseconds{5});
}

TEST(WorkQueue, RetriesOfAllKeysShareARate) {
    WorkQueue queue;
    for (int i = 0; i < 200; ++i) {
        queue.add_rate_limited({"d", fmt::format("k{}", i)}, kStart);
    }
    int ready = 0;
    while (queue.pop(kStart + milliseconds{5})) {
        ++ready;
    }
    EXPECT_EQ(ready, 100) << "the burst";
    while (queue.pop(kStart + seconds{5})) {
        ++ready;
    }
    EXPECT_NEAR(ready, 150, 1) << "ten a second";
}

TEST(WorkQueue, ShutDownDrainsWaitingKeysAndRejectsNewOnes) {
    WorkQueue queue;
    queue.add(kA, kStart);
    queue.add_after(kB, kStart + seconds{1}, kStart);
    queue.shut_down();
    queue.add({"d", "late"}, kStart);
    EXPECT_FALSE(queue.is_drained());
    EXPECT_EQ(queue.pop(kStart + seconds{2}), kA);
    EXPECT_EQ(queue.pop(kStart + seconds{2}), std::nullopt);
    EXPECT_FALSE(queue.is_drained());
    queue.done(kA);
    EXPECT_TRUE(queue.is_drained());
}

TEST(WorkQueue, CountsItsMetrics) {
    WorkQueue queue;
    queue.add(kA, kStart);
    queue.add(kB, kStart);
    queue.pop(kStart + seconds{2});
    const auto counts = queue.counts(kStart + seconds{5});
    EXPECT_EQ(counts.waiting, 1U);
    EXPECT_EQ(counts.processing, 1U);
    EXPECT_EQ(counts.adds, 2U);
    EXPECT_EQ(counts.queued, seconds{2});
    EXPECT_EQ(counts.longest_processing, seconds{3});
}

// Against a model: no key is in progress twice, no event is lost, everything ends.
TEST(WorkQueue, NeverLosesAnEventOrPopsAKeyTwice) {
    Prng prng(test::seed());
    WorkQueue queue;
    TimePoint now = kStart;
    std::set<ObjectKey> owed;  // changed since it was last popped
    std::set<ObjectKey> in_hand;
    const auto hand_out = [&] {
        while (const auto key = queue.pop(now)) {
            ASSERT_TRUE(in_hand.insert(*key).second);
            owed.erase(*key);
        }
    };
    for (int step = 0; step < 20'000; ++step) {
        const ObjectKey key{"d", fmt::format("k{}", prng.below(6))};
        switch (prng.below(6)) {
            case 0:
            case 1:
                queue.add(key, now);
                owed.insert(key);
                break;
            case 2:
                queue.add_after(key, now + milliseconds{prng.below(50)}, now);
                owed.insert(key);
                break;
            case 3:
                queue.add_rate_limited(key, now);
                owed.insert(key);
                break;
            case 4:
                if (!in_hand.empty()) {
                    const ObjectKey finished = *in_hand.begin();
                    in_hand.erase(in_hand.begin());
                    queue.forget(finished);
                    queue.done(finished);
                }
                break;
            default:
                now += milliseconds{prng.below(20)};
                hand_out();
        }
    }
    for (int round = 0; round < 10 && !owed.empty(); ++round) {
        for (const ObjectKey& key : in_hand) {
            queue.done(key);
        }
        in_hand.clear();
        now += std::chrono::hours{24};
        hand_out();
    }
    EXPECT_TRUE(owed.empty());
}

}  // namespace
}  // namespace stoker::control
