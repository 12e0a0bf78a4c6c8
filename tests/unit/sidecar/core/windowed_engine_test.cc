// The windowed contract on the real engine: jobs that draw from one scan, whose feed is the
// engine's plan in slices, as the leader does it. What the engine fetches is what the policy says.
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/fetch_engine.h"
#include "sidecar/core/sampling/windowed_sampler.h"
#include "tests/support/dataset.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

using sidecar::ConnectionId;
using sidecar::Effects;
using sidecar::FetchEngine;
using sidecar::SampleIndex;
using sidecar::SampleState;
using sidecar::StreamId;

constexpr TimePoint kNow{std::chrono::seconds{1000}};
constexpr std::uint32_t kSamples = 5000;
constexpr std::uint64_t kPayload = 784;
constexpr std::size_t kBatch = 32;

struct JobSetting {
    double speed = 1;
    double start = 0;
};

// Batches are drawn `pipeline` batches before they are read, as loaders with workers do; fetches
// arrive in a random order.
class Node {
public:
    Node(const std::vector<JobSetting>& jobs, double kept, std::size_t pipeline, std::uint64_t seed)
        : prng_(seed),
          scan_(kSamples, {.window_samples = share(0.2 * (1 - kept))}, seed),
          engine_(dataset_.manifest(), limits(kept), {record() * share(0.2 * kept), std::nullopt}),
          pipeline_(pipeline) {
        engine_.set_window_keeper(&scan_);
        apply(engine_.open(kNow));
        for (const JobSetting& setting : jobs) {
            Job& job = jobs_.emplace_back();
            job.setting = setting;
            job.next_at = setting.start;
            job.id = jobs_.size();
            job.sampler =
                *sidecar::WindowedSampler::make(scan_, {.count = kSamples, .seed = job.id}, {});
            engine_.on_connect(ConnectionId{job.id}, StreamId{job.id});
        }
    }

    // Share of the dataset fetched a job-epoch, without the fastest job's first epoch.
    double run(std::uint64_t epochs) {
        std::uint64_t from = 0;
        std::uint64_t reads = 0;
        for (;;) {
            Job& job = *std::ranges::min_element(jobs_, {}, &Job::next_at);
            if (job.epoch == epochs) {
                break;
            }
            if (jobs_[0].epoch > 0) {
                from = from == 0 ? engine_.counters().fetches : from;
                reads += kBatch;
            }
            step(job);
        }
        return static_cast<double>(engine_.counters().fetches - from) / static_cast<double>(reads);
    }

    [[nodiscard]] const FetchEngine& engine() const { return engine_; }

private:
    struct Job {
        JobSetting setting;
        std::uint64_t id = 0;
        std::unique_ptr<sidecar::WindowedSampler> sampler;
        double next_at = 0;
        std::uint64_t epoch = 0;
        std::uint64_t batches = 0;
        std::uint64_t request = 0;
        bool begun = false;
        bool ended = false;
        std::deque<std::vector<SampleIndex>> drawn;
        std::vector<std::uint8_t> seen = std::vector<std::uint8_t>(kSamples);
    };

    static std::uint32_t share(double of_dataset) {
        return static_cast<std::uint32_t>(of_dataset * kSamples + 0.5);
    }

    static Bytes record() { return Bytes{domain::record_bytes(kPayload)}; }

    static sidecar::EngineLimits limits(double kept) {
        sidecar::EngineLimits limits;
        limits.window = record() * share(0.2 * (1 - kept));
        return limits;
    }

    void step(Job& job) {
        if (!job.begun) {
            job.sampler->begin_epoch(0, job.epoch, 0);
            job.begun = true;
        }
        while (job.drawn.size() <= pipeline_ && !job.ended) {
            draw(job);
        }
        read(job);
        ++job.batches;
        job.next_at = job.setting.start + static_cast<double>(job.batches) / job.setting.speed;
        if (job.ended && job.drawn.empty()) {
            EXPECT_TRUE(std::ranges::all_of(job.seen, [](auto times) { return times == 1; }));
            std::ranges::fill(job.seen, 0);
            ++job.epoch;
            job.begun = job.ended = false;
        }
    }

    void draw(Job& job) {
        std::vector<sidecar::Draw> draws;
        job.sampler->draw(0, kBatch, draws);
        job.ended = draws.size() < kBatch;
        if (!draws.empty()) {
            job.drawn.emplace_back();
            for (const sidecar::Draw& one : draws) {
                job.drawn.back().push_back(one.served);
            }
        }
        std::vector<SampleIndex> plan;
        for (const auto& batch : job.drawn) {
            plan.insert(plan.end(), batch.begin(), batch.end());
        }
        job.sampler->foresee(0, 2048, plan);
        apply(engine_.on_plan(
            ConnectionId{job.id}, *sidecar::StreamPlan::make(job.epoch, plan, 0, kSamples), kNow));
        arrive();
    }

    void read(Job& job) {
        if (job.drawn.empty()) {
            return;
        }
        const auto batch = job.drawn.front();
        job.drawn.pop_front();
        std::vector<SampleIndex> missing;
        for (const SampleIndex sample : batch) {
            ++job.seen[sample];
            if (engine_.sample(sample).state != SampleState::kStored) {
                missing.push_back(sample);
            }
        }
        if (!missing.empty()) {
            apply(engine_.on_fetch(ConnectionId{job.id}, ++job.request, missing, kNow));
            arrive();
        }
        apply(engine_.on_consumed(ConnectionId{job.id}, job.epoch, batch, kNow));
        apply(engine_.on_fetch(ConnectionId{job.id}, ++job.request, {}, kNow));
        arrive();
    }

    void apply(const Effects& effects) {
        for (const SampleIndex sample : effects.drops) {
            scan_.on_gone(sample);
        }
        for (const auto& fetch : effects.fetches) {
            coming_.push_back(fetch.sample);
        }
        for (const auto& reply : effects.replies) {
            for (const auto outcome : reply.outcomes) {
                EXPECT_EQ(outcome, sidecar::FetchOutcome::kReady);
            }
        }
    }

    void arrive() {
        while (!coming_.empty()) {
            std::swap(coming_[prng_.below(coming_.size())], coming_.back());
            const SampleIndex sample = coming_.back();
            coming_.pop_back();
            const bool kept =
                engine_.sample(sample).segment_class == domain::SegmentClass::kResident;
            scan_.on_stored(sample, kept);
            apply(engine_.on_stored(sample, kNow));
        }
    }

    Prng prng_;
    Dataset dataset_{std::vector<std::uint64_t>(kSamples, kPayload)};
    sidecar::SharedScan scan_;
    FetchEngine engine_;
    std::size_t pipeline_;
    std::vector<Job> jobs_;
    std::vector<SampleIndex> coming_;
};

struct Case {
    const char* name;
    std::vector<JobSetting> jobs;
    double kept;
    std::size_t pipeline;
    double limit;
};

// Limits: what the policy's own simulation gives (windowed_scan_test.cc), and 3 %. The window holds
// what loaders have drawn ahead as well, so long pipelines take a larger part of the cache.
TEST(WindowedEngine, FetchesWhatThePolicySays) {
    const double epoch = static_cast<double>(kSamples) / kBatch;
    const std::vector<JobSetting> phases{{1, 0}, {1, 0.3 * epoch}, {1, 0.8 * epoch}};
    const std::vector<JobSetting> speeds{{1, 0}, {0.5, 0}, {0.7, 0}};
    const std::vector<Case> cases = {
        {"alone", {{1, 0}}, 0.75, 2, 0.85 * 1.03},
        {"in lock-step", {{1, 0}, {1, 0}, {1, 0}}, 0.75, 2, 0.283 * 1.03},
        {"at other phases", phases, 0.75, 2, 0.283 * 1.03},
        {"at other speeds", speeds, 0.75, 0, 0.369 * 1.03},
        {"at other speeds, drawn ahead", speeds, 0.75, 1, 0.369 * 1.03},
        {"at other speeds, drawn far ahead", speeds, 0.6, 2, 0.40 * 1.03},
    };
    const std::uint64_t base = seed();
    for (const Case& one : cases) {
        SCOPED_TRACE(one.name);
        Node node{one.jobs, one.kept, one.pipeline, base};
        EXPECT_LE(node.run(5), one.limit);
        EXPECT_EQ(node.engine().counters().demand_bypassed_samples, 0U);
    }
}

}  // namespace
}  // namespace stoker::test
