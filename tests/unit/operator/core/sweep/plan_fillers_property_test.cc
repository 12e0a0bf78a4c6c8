// Fillers of one Dataset in a simulated cluster where guests come and go, fillers crash, writes are
// lost and the operator restarts.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/api/time_format.h"
#include "operator/core/sweep/plan_fillers.h"
#include "tests/unit/operator/core/make_filler.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kRounds = 200;
constexpr int kTicks = 300;

class World {
public:
    explicit World(std::uint64_t seed)
        : prng_(seed) {
        view_.dataset = make_shared_dataset();
    }

    // One step of everything but the operator.
    void live() {
        now_ += static_cast<std::int64_t>(prng_.below(20));
        for (int node = 0; node < 3; ++node) {
            const FillerPlace place{"nvme", fmt::format("n{}", node)};
            if (prng_.below(12) == 0) {
                toggle(place);
            }
        }
        for (Job& job : view_.jobs) {
            if (prng_.below(40) == 0) {
                job.end = JobEnd{prng_.below(2) == 0, "", "", wall(now_)};
            }
        }
        std::erase_if(view_.jobs, [&](const Job& job) {
            return job.meta.deleting_since && prng_.below(2) == 0;
        });
    }

    // `everything`: no write is lost.
    void operate(bool everything) {
        const FillerPlan plan = plan_fillers(view_, wall(now_));
        for (const FillerPlace& place : plan.create) {
            EXPECT_TRUE(view_.needed.contains(place));
            if (happens(everything)) {
                add(place);
            }
        }
        for (const FillerMark& mark : plan.mark) {
            if (Job* job = find(mark.job.uid); job != nullptr && happens(everything)) {
                job->meta.annotations[std::string{kIdleSinceAnnotation}] = format_time(mark.since);
            }
        }
        for (const FillerJob& removed : plan.remove) {
            Job* job = find(removed.uid);
            ASSERT_NE(job, nullptr);
            check_removal(*job);
            if (happens(everything)) {
                job->meta.deleting_since = wall(now_);
            }
        }
    }

    // For use after settle(): each needed place (a dataset's directory on a node) has exactly one
    // filler, and no other place has any.
    void check_settled() {
        std::set<FillerPlace> there;
        for (const Job& job : view_.jobs) {
            EXPECT_TRUE(there.insert(place_of(job.meta)).second) << "two at one place";
        }
        for (const auto& [place, digest] : view_.needed) {
            EXPECT_TRUE(there.contains(place)) << place.node;
        }
        EXPECT_EQ(there.size(), view_.needed.size());
    }

    void settle() {
        for (int i = 0; i < 10; ++i) {
            now_ += 30;
            std::erase_if(view_.jobs, [](const Job& job) { return job.meta.deleting_since; });
            operate(true);
        }
    }

private:
    bool happens(bool everything) { return everything || prng_.below(4) != 0; }

    void toggle(const FillerPlace& place) {
        if (view_.needed.erase(place) == 0) {
            view_.needed[place] = digest_of(make_filler_job(view_.dataset, place));
        }
    }

    void add(const FillerPlace& place) {
        Job job = make_filler_job(view_.dataset, place);
        job.meta.uid = fmt::format("uid-{}", ++made_);
        job.start_time = wall(now_);
        EXPECT_TRUE(std::ranges::none_of(
            view_.jobs, [&](const Job& it) { return it.meta.name == job.meta.name; }));
        view_.jobs.push_back(job);
    }

    Job* find(const std::string& uid) {
        const auto found =
            std::ranges::find_if(view_.jobs, [&](const Job& job) { return job.meta.uid == uid; });
        return found == view_.jobs.end() ? nullptr : &*found;
    }

    // A working filler is removed only if it was marked idle, and is needed again or was idle for
    // the whole grace period.
    void check_removal(const Job& job) {
        if (job.end) {
            return;
        }
        const auto since =
            parse_time(value_or_empty(job.meta.annotations, std::string{kIdleSinceAnnotation}));
        ASSERT_TRUE(since) << "the filler was needed all the time";
        EXPECT_TRUE(
            view_.needed.contains(place_of(job.meta)) || wall(now_) - *since >= kFillerGrace);
    }

    Prng prng_;
    std::int64_t now_ = 1000;
    std::uint64_t made_ = 0;
    FillerView view_;
};

TEST(PlanFillersProperty, OneFillerPerPlaceWithGuestsAndNoneAfterTheGrace) {
    Prng seeds(test_seed());
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
        World world(seeds());
        for (int tick = 0; tick < kTicks; ++tick) {
            world.live();
            world.operate(false);
        }
        world.settle();
        world.check_settled();
    }
}

}  // namespace
}  // namespace stoker::control
