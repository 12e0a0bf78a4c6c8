#include "sidecar/engine/shared_importance.h"

#include <numeric>

#include <gmock/gmock.h>

#include "sidecar/engine/contracts.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 640;  // 20 parts of a sketch

local::Begin begin_of(std::string job, std::uint64_t epoch) {
    local::Begin begin;
    begin.contract = "importance";
    begin.job = std::move(job);
    begin.epoch = epoch;
    begin.seed = 3;
    begin.batch = 20;
    begin.parameters = {
        {"warmupEpochs", 1}, {"beta", 1}, {"reuseFactor", 100}, {"substitute", 0}, {"hShare", 1}};
    return begin;
}

struct AnyMayGo final {
    [[nodiscard]] bool operator()(SampleIndex /*sample*/) const { return true; }
};

// Jobs on one node directory: each has a stream and reports the loss `slope * i + base` for sample
// i.
class SharedImportanceTest : public testing::Test {
protected:
    struct Job {
        StreamId stream;
        const char* name;
        double slope;
        double base;
    };

    void run_epoch(const Job& job, std::uint64_t epoch, double beta = 1) {
        auto frame = begin_of(job.name, epoch);
        frame.parameters[1].value = beta;
        ASSERT_TRUE(service.begin(job.stream, frame, {}).has_value());
        if (auto fresh = contracts.importance().new_eviction()) {
            eviction = std::move(fresh);
        }
        for (bool ended = false; !ended;) {
            const auto drawn = service.draw(job.stream, {epoch, 20}).value();
            std::vector<float> losses;
            for (const std::uint64_t id : drawn.served) {
                losses.push_back(
                    static_cast<float>(job.slope * static_cast<double>(id) + job.base));
            }
            service.on_losses(job.stream, {epoch, drawn.served, losses});
            ended = drawn.ended;
        }
    }

    // The resident sample that `incoming` would evict; kCount: none.
    SampleIndex victim_of(SampleIndex incoming) {
        std::vector<SampleIndex> victims;
        eviction->make_room(incoming, Bytes{100}, AnyMayGo{}, victims);
        return victims.empty() ? kCount : victims.front();
    }

    void make_resident(std::initializer_list<SampleIndex> samples) {
        for (const SampleIndex sample : samples) {
            eviction->on_resident(sample, Bytes{100});
        }
    }

    // Ends a refresh: each read copies some of the current importance values to the policy.
    void finish_refresh() {
        for (int calls = 0; calls < 16; ++calls) {
            eviction->on_read(0, true);
        }
    }

    static constexpr Job kRising{StreamId{1}, "uid-a/loader", 1, 0};
    static constexpr Job kFalling{StreamId{2}, "uid-b/loader", -10, 10.0 * kCount};

    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    std::unique_ptr<EvictionPolicy> eviction;
};

TEST_F(SharedImportanceTest, KeepsSamplesOfTheJobWithMoreWeight) {
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(kFalling, epoch);
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-a", 1}, {"uid-b", 0}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U);
    EXPECT_EQ(victim_of(0), kCount) << "what only a compute-bound job wants displaces nothing";
    contracts.importance().set_weights({{"uid-a", 0}, {"uid-b", 1}});
    finish_refresh();
    EXPECT_EQ(victim_of(0), 620U);
    EXPECT_EQ(victim_of(639), kCount);
}

// With beta 0 no sample is read more often than another.
TEST_F(SharedImportanceTest, JobThatReadsEvenlyDoesNotAffectEviction) {
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(kFalling, epoch, 0);
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-a", 1}, {"uid-b", 9}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U) << "whatever its weight";
    EXPECT_EQ(victim_of(0), kCount);
}

// The losses of more than 65,536 samples are ranked in slices, while the epoch is drawn.
TEST(SharedImportance, RefreshesValuesWhenARebuildEndsInMidEpoch) {
    constexpr std::uint32_t kMany = 160'000;
    Contracts contracts{kMany, 100};
    SamplerService service{test::kEmptyNode, kMany, contracts};
    ASSERT_TRUE(service.begin(StreamId{1}, begin_of("uid-a/x", 0), {}).has_value());
    const auto eviction = contracts.importance().new_eviction();
    const auto* policy = dynamic_cast<const ImportanceEviction*>(eviction.get());
    ASSERT_NE(policy, nullptr);
    eviction->on_resident(0, Bytes{100});
    std::vector<std::uint64_t> ids(kMany);
    std::iota(ids.begin(), ids.end(), 0);
    service.on_losses(StreamId{1}, {0, ids, {ids.begin(), ids.end()}});
    ASSERT_TRUE(service.begin(StreamId{1}, begin_of("uid-a/x", 1), {}).has_value());
    EXPECT_FALSE(policy->refreshing());
    std::uint32_t draws = 0;
    for (; draws < kMany / 2 && !policy->refreshing(); draws += 100) {
        ASSERT_TRUE(service.draw(StreamId{1}, {1, 100}).has_value());
        service.on_read(StreamId{1}, std::vector<SampleIndex>{});
    }
    EXPECT_TRUE(policy->refreshing()) << "after " << draws << " draws";
}

TEST_F(SharedImportanceTest, UnlistedJobHasTheMeanWeight) {
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(kFalling, epoch);
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-b", 1}, {"uid-c", 9}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U) << "uid-a weighs 5";
}

TEST_F(SharedImportanceTest, EndedJobsImportanceIsRemoved) {
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(kFalling, epoch);
    }
    service.leave(kFalling.stream);
    run_epoch(kRising, 2);
    make_resident({620, 20});
    EXPECT_EQ(victim_of(639), 20U);
    EXPECT_EQ(victim_of(0), kCount);
}

TEST_F(SharedImportanceTest, RatesImportancePerByte) {
    Contracts by_size{kCount, 100, [](SampleIndex sample) {
                          return sample >= kCount / 2 ? Bytes{4000} : Bytes{100};
                      }};
    SamplerService sized{test::kEmptyNode, kCount, by_size};
    for (const std::uint64_t epoch : {0U, 1U}) {
        ASSERT_TRUE(sized.begin(StreamId{1}, begin_of("uid-a/x", epoch), {}).has_value());
        if (auto fresh = by_size.importance().new_eviction()) {
            eviction = std::move(fresh);
        }
        for (bool ended = false; !ended;) {
            const auto drawn = sized.draw(StreamId{1}, {epoch, 20}).value();
            const std::vector<float> losses(drawn.served.begin(), drawn.served.end());
            sized.on_losses(StreamId{1}, {epoch, drawn.served, losses});
            ended = drawn.ended;
        }
    }
    make_resident({620, 200});
    EXPECT_EQ(victim_of(250), 620U);
    eviction.reset();
}

TEST_F(SharedImportanceTest, SketchShowsHowUnevenlyAJobReads) {
    for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        run_epoch(kRising, epoch);
    }
    const std::vector<JobSketch> sketches = contracts.importance().sketches();
    ASSERT_EQ(sketches.size(), 1U);
    EXPECT_EQ(sketches[0].job_uid, "uid-a");
    EXPECT_EQ(sketches[0].revision, 11U) << "the twelfth epoch has not ended";
    ASSERT_EQ(sketches[0].masses.size(), 20U);
    const auto& masses = sketches[0].masses;
    EXPECT_NEAR(std::accumulate(masses.begin(), masses.end(), 0.0), 1, 1e-5);
    // With beta 1, the half of the samples with the higher losses gets three quarters of the reads.
    EXPECT_NEAR(std::accumulate(masses.begin(), masses.begin() + 10, 0.0), 0.75, 0.06);
    EXPECT_NEAR(sketches[0].volume, 0.5, 0.08);
}

TEST_F(SharedImportanceTest, SketchIsInTheOrderInWhichTheNodeKeepsSamples) {
    contracts.importance().set_weights({{"uid-a", 1}, {"uid-b", 0}});
    for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
        run_epoch(kRising, epoch);
        run_epoch(kFalling, epoch);
    }
    const std::vector<JobSketch> sketches = contracts.importance().sketches();
    ASSERT_EQ(sketches.size(), 2U);
    const auto first_half = [](const JobSketch& sketch) {
        return std::accumulate(sketch.masses.begin(), sketch.masses.begin() + 10, 0.0);
    };
    EXPECT_GT(first_half(sketches[0]), 0.65);
    EXPECT_LT(first_half(sketches[1]), 0.35) << "what it wants is kept last";
}

TEST_F(SharedImportanceTest, OnlyActiveJobsWithAUidHaveASketch) {
    run_epoch({StreamId{4}, "no-uid", 1, 0}, 0);
    run_epoch(kRising, 0);
    EXPECT_TRUE(contracts.importance().sketches().empty()) << "no epoch has ended";
    run_epoch({StreamId{4}, "no-uid", 1, 0}, 1);
    run_epoch(kRising, 1);
    EXPECT_EQ(contracts.importance().sketches().size(), 1U);
    service.leave(kRising.stream);
    EXPECT_TRUE(contracts.importance().sketches().empty());
}

TEST_F(SharedImportanceTest, GuestJobHasTheOperatorsWeight) {
    const std::string name = guest_job("team-a", "uid-b/loader");
    const Job guest{StreamId{2}, name.c_str(), -10, 10.0 * kCount};
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(guest, epoch);
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-a", 1}, {"uid-b", 9}, {"team-b/uid-b", 9}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U) << "it is not uid-b, nor of team-b";
    contracts.importance().set_weights({{"uid-a", 1}, {"team-a/uid-b", 9}});
    finish_refresh();
    EXPECT_EQ(victim_of(0), 620U);
}

TEST_F(SharedImportanceTest, GuestNamespaceNamedLikeAJobsUidDoesNotGetThatJobsWeight) {
    const std::string name = guest_job("uid-a", "loader");
    const Job guest{StreamId{2}, name.c_str(), -10, 10.0 * kCount};
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        run_epoch(guest, epoch);
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-a", 1}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U);
}

TEST_F(SharedImportanceTest, DetectsThatOnlyGuestsAreActive) {
    EXPECT_FALSE(contracts.importance().is_guests_only()) << "nobody measures";
    const std::string name = guest_job("team-a", "uid-b/loader");
    run_epoch({StreamId{2}, name.c_str(), -10, 10.0 * kCount}, 0);
    EXPECT_TRUE(contracts.importance().is_guests_only());
    run_epoch(kRising, 0);
    EXPECT_FALSE(contracts.importance().is_guests_only());
}

TEST_F(SharedImportanceTest, SamplersOfOneGuestJobShareItsWeight) {
    std::vector<std::string> names;
    for (int copy = 0; copy < 12; ++copy) {
        names.push_back(guest_job("team-a", "uid-b/loader-" + std::to_string(copy)));
    }
    for (const std::uint64_t epoch : {0U, 1U}) {
        run_epoch(kRising, epoch);
        for (std::size_t copy = 0; copy < names.size(); ++copy) {
            run_epoch({StreamId{10 + copy}, names[copy].c_str(), -10, 10.0 * kCount}, epoch);
        }
    }
    make_resident({620, 20});
    contracts.importance().set_weights({{"uid-a", 4}, {"team-a/uid-b", 1}});
    finish_refresh();
    EXPECT_EQ(victim_of(639), 20U) << "four against one";
}

}  // namespace
}  // namespace stoker::sidecar
