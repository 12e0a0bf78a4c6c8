#include "sidecar/advise/replay.h"

#include <algorithm>
#include <cmath>

#include "common/domain/segment_format.h"
#include "sidecar/simulate/simulator.h"

namespace stoker::advise {

namespace {

constexpr std::uint32_t kReadersMax = 48;  // most readers that the simulator takes
constexpr double kEpochsMax = 10'000;      // most epochs under another contract
constexpr double kRateUnknown = 2000;      // samples per second, used if the trace has no times

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

Run summary(const simulate::Outcome& outcome) {
    Run run;
    std::uint64_t hits = 0;
    std::uint64_t requested = 0;
    for (std::size_t job = 0; job < outcome.jobs.size(); ++job) {
        double total = 0;
        for (const simulate::EpochFigures& epoch : outcome.jobs[job].epochs) {
            run.origin_bytes += epoch.origin_bytes;
            hits += epoch.hits;
            requested += epoch.requested;
            total += seconds(epoch.time);
        }
        run.seconds = std::max(run.seconds, total);
        run.epoch_seconds =
            std::max(run.epoch_seconds, simulate::means_of(outcome, job, 1).seconds);
    }
    run.hit_ratio = requested > 0 ? static_cast<double>(hits) / static_cast<double>(requested) : 0;
    return run;
}

}  // namespace

Replay::Replay(const Trace& trace, const Shape& shape, const Question& question)
    : shape_(shape),
      window_(question.window),
      workers_(question.workers) {
    auto reads = by_reader(trace, shape, kReadersMax);
    readers_ = static_cast<double>(reads.size());
    base_.dataset.sizes = trace.sizes;
    base_.epochs = static_cast<std::uint32_t>(reads.front().size());
    base_.discard = 0;
    base_.batch = question.batch;
    if (question.origin) {
        base_.origin.bytes_per_second = question.origin->bytes_per_second;
        base_.origin.latency = question.origin->latency;
        base_.origin.requests_max = question.origin->requests_max;
    }
    const double traced = shape.reads_per_second() > 0 ? shape.reads_per_second() : kRateUnknown;
    base_.samples_per_second = question.compute_rate.value_or(traced) / readers_;
    base_.jobs.assign(reads.size(), simulate::JobSpec{});
    epochs_ = static_cast<double>(shape.reads) / static_cast<double>(shape.samples) /
              (shape.each_reads_all ? readers_ : 1);
    for (std::size_t reader = 0; reader < reads.size(); ++reader) {
        std::size_t own = 0;
        for (const auto& epoch : reads[reader]) {
            own += epoch.size();
        }
        // Sets the speed so that all ranks take equally long, as in the trace.
        base_.jobs[reader].speed =
            static_cast<double>(own) * readers_ / static_cast<double>(shape.reads);
        auto recorded = std::make_shared<simulate::RecordedReads>();
        recorded->epochs = std::move(reads[reader]);
        recorded->plans = shape.pattern == Pattern::kEachOnce;
        base_.jobs[reader].recorded = std::move(recorded);
    }
    for (const std::uint64_t size : trace.sizes) {
        on_node_ += Bytes{domain::record_bytes(size)};
    }
}

simulate::Scenario Replay::scenario(Bytes size, std::string_view policy) const {
    simulate::Scenario scenario = base_;
    const Bytes window = policy.empty() ? window_ : Bytes{};
    scenario.cache.share = 0;
    scenario.cache.bytes = size + window;
    scenario.cache.policy = policy;
    if (window > Bytes{}) {
        scenario.cache.window_share =
            static_cast<double>(window.count()) / static_cast<double>(scenario.cache.bytes.count());
    }
    return scenario;
}

Result<Run> Replay::with_cache(Bytes size, std::string_view policy) const {
    STOKER_TRY(const simulate::Outcome outcome, simulate::run(scenario(size, policy)));
    return summary(outcome);
}

Result<Run> Replay::without_cache() const {
    simulate::Scenario alone = scenario(Bytes{}, "lru");
    alone.origin.requests_max =
        std::min(workers_ * static_cast<std::uint32_t>(base_.jobs.size()), 65536U);
    STOKER_TRY(const simulate::Outcome outcome, simulate::run(alone));
    Run run = summary(outcome);
    run.hit_ratio = 0;
    run.origin_bytes = shape_.read_bytes;
    return run;
}

double Replay::first_batch_seconds() const {
    const double sample =
        static_cast<double>(shape_.read_bytes.count()) / static_cast<double>(shape_.reads);
    return seconds(base_.origin.latency) +
           base_.batch * sample / static_cast<double>(base_.origin.bytes_per_second.count());
}

Result<Bytes> Replay::under_contract(Bytes size, std::string_view contract) const {
    simulate::Scenario other = scenario(size, "");
    simulate::JobSpec job;
    job.contract = contract;
    other.jobs.assign(shape_.each_reads_all ? base_.jobs.size() : 1, job);
    other.samples_per_second = compute_rate() / static_cast<double>(other.jobs.size());
    other.epochs = static_cast<std::uint32_t>(std::clamp(std::ceil(epochs_), 1.0, kEpochsMax));
    STOKER_TRY(const simulate::Outcome outcome, simulate::run(other));
    double bytes = 0;
    for (const simulate::JobFigures& figures : outcome.jobs) {
        for (const simulate::EpochFigures& epoch : figures.epochs) {
            const double part = std::min(epochs_ - static_cast<double>(epoch.epoch), 1.0);
            bytes += part * static_cast<double>(epoch.origin_bytes.count());
        }
    }
    return Bytes{static_cast<std::uint64_t>(bytes)};
}

}  // namespace stoker::advise
