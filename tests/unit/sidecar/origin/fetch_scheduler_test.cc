#include "sidecar/origin/fetch_scheduler.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

constexpr SchedulerLimits kLimits{
    .requests_max = 8,
    .bytes_max = Bytes{200},
    .large_object_bytes = Bytes{20},
    .part_bytes = Bytes{10}};

using Part = FetchScheduler::Part;

TEST(FetchScheduler, StartsSmallObjectsInOrderUpToTheLimit) {
    FetchScheduler scheduler{kLimits};
    for (std::uint64_t id = 0; id < 10; ++id) {
        scheduler.add(FetchId{id}, 5);
    }
    for (std::uint64_t id = 0; id < 8; ++id) {
        EXPECT_EQ(scheduler.next(), (Part{FetchId{id}, std::nullopt, true}));
    }
    EXPECT_EQ(scheduler.next(), std::nullopt);
    scheduler.part_ended(5);
    scheduler.remove(FetchId{0});
    EXPECT_EQ(scheduler.next(), (Part{FetchId{8}, std::nullopt, true}));
}

TEST(FetchScheduler, FollowsAChangedLimit) {
    FetchScheduler scheduler{kLimits};
    for (std::uint64_t id = 0; id < 12; ++id) {
        scheduler.add(FetchId{id}, 1);
    }
    scheduler.set_requests_max(10);
    int started = 0;
    while (scheduler.next()) {
        ++started;
    }
    EXPECT_EQ(started, 10);
    scheduler.set_requests_max(9);
    scheduler.part_ended(1);
    EXPECT_EQ(scheduler.next(), std::nullopt) << "9 run";
    scheduler.part_ended(1);
    EXPECT_TRUE(scheduler.next().has_value());
}

TEST(FetchScheduler, CutsALargeObjectIntoRangesThatCoverIt) {
    FetchScheduler scheduler{kLimits};
    EXPECT_EQ(scheduler.part_count(20), 1U) << "the limit itself is small";
    EXPECT_EQ(scheduler.part_count(21), 3U);
    EXPECT_EQ(scheduler.part_count(30), 3U);
    EXPECT_EQ(scheduler.part_count(0), 1U);
    scheduler.add(FetchId{1}, 25);
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, ByteRange{0, 10}, true}));
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, ByteRange{10, 10}, false}));
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, ByteRange{20, 5}, false}));
    EXPECT_EQ(scheduler.next(), std::nullopt);
}

TEST(FetchScheduler, AHugeObjectLeavesMostSlotsToSmallOnes) {
    FetchScheduler scheduler{kLimits};
    scheduler.add(FetchId{0}, 100'000);
    for (std::uint64_t id = 1; id <= 20; ++id) {
        scheduler.add(FetchId{id}, 1);
    }
    int large = 0;
    int small = 0;
    while (const auto part = scheduler.next()) {
        ++(part->range ? large : small);
    }
    EXPECT_EQ(large, 2) << "a quarter of 8";
    EXPECT_EQ(small, 6);
}

TEST(FetchScheduler, AHugeObjectAloneLeavesHalfTheSlotsFree) {
    FetchScheduler scheduler{kLimits};
    scheduler.add(FetchId{0}, 100'000);
    int parts = 0;
    while (scheduler.next()) {
        ++parts;
    }
    EXPECT_EQ(parts, 4);
    scheduler.add(FetchId{1}, 1);
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, std::nullopt, true})) << "at once";
}

TEST(FetchScheduler, BoundsTheBytesOfSmallAndLargeObjectsSeparately) {
    FetchScheduler scheduler{kLimits};
    for (std::uint64_t id = 0; id < 7; ++id) {
        scheduler.add(FetchId{id}, 20);
    }
    int started = 0;
    while (scheduler.next()) {
        ++started;
    }
    EXPECT_EQ(started, 5) << "100 bytes of 200 are the small lane's";
    scheduler.remove(FetchId{0});
    scheduler.part_ended(20);
    EXPECT_TRUE(scheduler.next().has_value());
}

TEST(FetchScheduler, OneObjectIsAlwaysAllowedHoweverLarge) {
    FetchScheduler scheduler{kLimits};
    scheduler.add(FetchId{0}, 1'000'000);
    scheduler.add(FetchId{1}, 30);
    const auto first = scheduler.next();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->fetch, FetchId{0});
    scheduler.remove(FetchId{0});
    scheduler.part_ended(1'000'000);
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, ByteRange{0, 10}, true}));
}

TEST(FetchScheduler, ForgetsThePartsOfARemovedObject) {
    FetchScheduler scheduler{kLimits};
    scheduler.add(FetchId{0}, 1000);
    scheduler.add(FetchId{1}, 1);
    ASSERT_TRUE(scheduler.next().has_value());
    scheduler.remove(FetchId{0});
    scheduler.remove(FetchId{0});  // a second removal does nothing
    EXPECT_EQ(scheduler.next(), (Part{FetchId{1}, std::nullopt, true}));
    EXPECT_EQ(scheduler.next(), std::nullopt);
    EXPECT_EQ(scheduler.running_requests(), 2U) << "the part that runs keeps its slot";
    scheduler.part_ended(1000);
    EXPECT_EQ(scheduler.running_requests(), 1U);
}

// Random runs against a model: objects of random sizes are added, fail and finish. The limits
// always hold, every part starts exactly once, and no object starves.
TEST(FetchScheduler, KeepsItsLimitsInRandomRuns) {
    Prng random{test::seed()};
    for (int run = 0; run < 50; ++run) {
        FetchScheduler scheduler{kLimits};
        std::map<FetchId, std::uint64_t> sizes;
        std::map<FetchId, std::uint64_t> covered;
        std::map<FetchId, std::uint64_t> parts_left;
        std::vector<FetchId> running;
        constexpr std::uint64_t kObjects = 60;
        std::uint64_t added = 0;
        std::uint64_t finished = 0;
        while (finished < kObjects) {
            if (added < kObjects && random.below(3) == 0) {
                const FetchId id{added++};
                sizes[id] = random.below(4) == 0 ? 21 + random.below(300) : random.below(21);
                parts_left[id] = scheduler.part_count(sizes[id]);
                scheduler.add(id, sizes[id]);
            }
            while (const auto part = scheduler.next()) {
                running.push_back(part->fetch);
                covered[part->fetch] += part->range ? part->range->length : sizes[part->fetch];
            }
            ASSERT_LE(running.size(), 8U);
            ASSERT_EQ(scheduler.running_requests(), running.size());
            std::uint64_t small_bytes = 0;
            std::set<FetchId> active;
            for (const FetchId id : running) {
                if (sizes[id] <= 20 && active.insert(id).second) {
                    small_bytes += sizes[id];
                }
            }
            ASSERT_LE(small_bytes, 100U);
            if (!running.empty() && random.below(2) == 0) {
                const auto at = running.begin() + static_cast<long>(random.below(running.size()));
                const FetchId id = *at;
                running.erase(at);
                scheduler.part_ended(sizes[id]);
                if (--parts_left[id] == 0) {
                    scheduler.remove(id);
                    ASSERT_EQ(covered[id], sizes[id]);
                    ++finished;
                }
            }
        }
        EXPECT_EQ(scheduler.object_count(), 0U);
    }
}

}  // namespace
}  // namespace stoker::sidecar
