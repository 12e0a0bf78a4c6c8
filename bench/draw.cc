// stoker-bench-draw [SAMPLES [JOBS BATCHES BATCH]]      what a draw of a `windowed` job costs in the engine
//
// Drives DatasetEngine, with its plans, fetches and window, for SAMPLES samples of 110 KiB (default
// 10,000,000), a fifth of them resident, and the standard window. JOBS jobs read in lock-step, and
// their loaders draw BATCHES batches of BATCH samples ahead; default: one and three jobs, 2 batches of
// 128 and 16 of 256. A fetch ends one batch after it begins. Moves no sample bytes.
//
// Prints one JSON object per line: `draw_ns`, the processor time of DatasetEngine::draw() per drawn sample
// (sampler, size of the window, plan, and the fetches that the draw begins), as the median over slices of
// the first two million draws of each job; `slowest_slice_ns`; and `fetched_share`, samples fetched per
// sample drawn.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/domain/segment_format.h"
#include "sidecar/engine/dataset_engine.h"

namespace stoker::bench {

namespace {

using sidecar::ConnectionId;
using sidecar::SampleIndex;
using sidecar::StreamId;

constexpr std::uint64_t kSampleBytes = 110 << 10U;
constexpr std::uint32_t kResidentEvery = 5;
constexpr std::uint64_t kDrawsMax = 2'000'000;  // measured draws of a job
constexpr std::uint32_t kSlices = 20;

// Processor time of this thread; excludes other programs on the machine.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Batches that a job's loader draws ahead, and samples in each.
struct Ahead {
    std::uint32_t batches = 0;
    std::uint32_t batch = 0;
};

struct Loader {
    ConnectionId connection{};
    StreamId stream{};
    std::deque<std::vector<SampleIndex>> drawn;
    bool has_ended = false;
};

// A node with jobs in lock-step, in virtual time.
class Node {
public:
    Node(std::span<const std::uint64_t> sizes, std::uint32_t jobs, Ahead ahead)
        : ahead_(ahead),
          count_(static_cast<std::uint32_t>(sizes.size())),
          engine_(sidecar::SampleSizes{sizes}, {}, grant_for(count_)) {
        for (std::uint32_t sample = 0; sample < count_; sample += kResidentEvery) {
            engine_.adopt(sample, domain::SegmentClass::kResident);
        }
        apply(engine_.fetch().open(now_));
        for (std::uint32_t job = 0; job < jobs; ++job) {
            begin(job);
        }
    }

    // Runs the jobs and prints the figures.
    void run() {
        while (!loaders_.front().has_ended && slices_.size() < kSlices) {
            now_ += std::chrono::milliseconds{1};
            land(due_);
            due_ = flying_.size();
            for (Loader& loader : loaders_) {
                step(loader);
            }
        }
        std::ranges::sort(slices_);
        fmt::print(
            "{{\"jobs\": {}, \"ahead\": \"{}x{}\", \"samples\": {}, \"draw_ns\": {:.0f}, "
            "\"slowest_slice_ns\": {:.0f}, \"fetched_share\": {:.3f}}}\n",
            loaders_.size(),
            ahead_.batches,
            ahead_.batch,
            count_,
            slices_[slices_.size() / 2],
            slices_.back(),
            static_cast<double>(engine_.fetch().counters().fetches) /
                static_cast<double>(total_drawn_));
        std::fflush(stdout);
    }

private:
    static sidecar::EngineGrant grant_for(std::uint32_t count) {
        const std::uint64_t kept = (count + kResidentEvery - 1) / kResidentEvery;
        sidecar::EngineGrant grant;
        grant.resident_bytes = Bytes{kept * domain::record_bytes(kSampleBytes)};
        return grant;
    }

    void begin(std::uint32_t job) {
        Loader& loader = loaders_.emplace_back();
        loader.connection = ConnectionId{job + 1};
        loader.stream = StreamId{job + 1};
        engine_.fetch().on_connect(loader.connection, loader.stream);
        sidecar::Effects effects;
        local::Begin begin;
        begin.seed = job;
        begin.batch = ahead_.batch;
        begin.contract = "windowed";
        begin.job = fmt::format("{}", job);
        const auto begun =
            engine_.begin({loader.connection, loader.stream}, begin, {}, now_, effects);
        STOKER_CHECK(begun.has_value(), "a job can begin");
        apply(effects);
    }

    // The loader draws until it is as far ahead as it may be, and its trainer reads one batch.
    void step(Loader& loader) {
        while (!loader.has_ended && loader.drawn.size() < ahead_.batches) {
            draw(loader);
        }
        if (loader.drawn.empty()) {
            return;
        }
        const std::vector<SampleIndex> batch = std::move(loader.drawn.front());
        loader.drawn.pop_front();
        demand(loader, batch);
        sidecar::ReadCounts counts;
        apply(engine_.on_consumed(loader.connection, loader.stream, 0, batch, now_, counts));
    }

    void draw(Loader& loader) {
        sidecar::Effects effects;
        const double before = cpu_ns();
        const auto drawn =
            engine_.draw(loader.connection, loader.stream, {0, ahead_.batch}, now_, effects);
        spent_ns_ += cpu_ns() - before;
        STOKER_CHECK(drawn.has_value(), "a loader draws in the epoch that it has begun");
        loader.has_ended = drawn->ended;
        drawn_ += drawn->served.size();
        total_drawn_ += drawn->served.size();
        if (!drawn->served.empty()) {
            loader.drawn.emplace_back(drawn->served.begin(), drawn->served.end());
        }
        if (drawn_ >= slice_draws()) {
            slices_.push_back(spent_ns_ / static_cast<double>(drawn_));
            spent_ns_ = 0;
            drawn_ = 0;
        }
        apply(effects);
    }

    [[nodiscard]] std::uint64_t slice_draws() const {
        const std::uint64_t draws = std::min<std::uint64_t>(count_, kDrawsMax) * loaders_.size();
        return std::max<std::uint64_t>(draws / kSlices, 1);
    }

    // Demands the batch; returns when all of it is on the node.
    void demand(const Loader& loader, const std::vector<SampleIndex>& batch) {
        std::vector<SampleIndex> missing;
        for (const SampleIndex sample : batch) {
            if (!engine_.fetch().residency().is_stored(sample)) {
                missing.push_back(sample);
            }
        }
        if (missing.empty()) {
            return;
        }
        apply(engine_.fetch().on_fetch(loader.connection, ++request_, missing, now_));
        while (engine_.fetch().pending_requests(loader.connection) > 0) {
            STOKER_CHECK(!flying_.empty(), "a demand is answered");
            land(flying_.size());
        }
    }

    // Ends the oldest `count` fetches.
    void land(std::size_t count) {
        for (; count > 0 && !flying_.empty(); --count) {
            const SampleIndex sample = flying_.front();
            flying_.pop_front();
            apply(engine_.fetch().on_stored(sample, now_));
        }
    }

    void apply(const sidecar::Effects& effects) {
        for (const sidecar::StartFetch& fetch : effects.fetches) {
            flying_.push_back(fetch.sample);
        }
    }

    Ahead ahead_;
    std::uint32_t count_;
    sidecar::DatasetEngine engine_;
    std::vector<Loader> loaders_;
    std::deque<SampleIndex> flying_;
    std::size_t due_ = 0;  // number of fetches in flight_ begun before the last step
    TimePoint now_ = TimePoint{} + std::chrono::seconds{1};
    std::uint64_t request_ = 0;
    double spent_ns_ = 0;
    std::uint64_t drawn_ = 0;  // in the slice
    std::uint64_t total_drawn_ = 0;
    std::vector<double> slices_;
};

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    const auto number = [&](int at) {
        return static_cast<std::uint32_t>(std::strtoul(argv[at], nullptr, 10));
    };
    const std::uint32_t samples = argc > 1 ? number(1) : 10'000'000;
    if ((argc > 2 && argc != 5) || samples == 0) {
        fmt::print(stderr, "usage: stoker-bench-draw [SAMPLES [JOBS BATCHES BATCH]]\n");
        return 2;
    }
    const std::vector<std::uint64_t> sizes(samples, stoker::bench::kSampleBytes);
    if (argc == 5) {
        stoker::bench::Node{sizes, number(2), {number(3), number(4)}}.run();
        return 0;
    }
    for (const std::uint32_t jobs : {1U, 3U}) {
        stoker::bench::Node{sizes, jobs, {2, 128}}.run();
        stoker::bench::Node{sizes, jobs, {16, 256}}.run();
    }
    return 0;
}
