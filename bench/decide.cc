// stoker-bench-decide [SAMPLES]      what deciding costs, for every contract that measures
// importance
//
// Runs a full and a selective epoch of one job over SAMPLES samples (10,000,000 unless told) with a
// cache for a fifth of them: draw, foresee, losses, admission, eviction, refresh, all but the
// bytes. Prints one JSON object a line: `decide_ns_per_sample` (processor time per sample drawn),
// `policy_bytes_per_sample` (sampler and eviction policy, per sample of the dataset),
// `longest_batch_us` (of 256 draws with all that belongs to them) and `begin_epoch_ms`.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"

namespace stoker::bench {

namespace {

using sidecar::SampleIndex;

constexpr std::size_t kBatch = 256;
constexpr std::uint64_t kSampleBytes = 110000;

// Of this thread: what others do on the machine does not count.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Everybody final : public sidecar::EvictionPolicy::MayGo {
public:
    bool operator()(SampleIndex /*sample*/) const override { return true; }
};

struct Figures {
    double ns = 0;
    double longest_batch_ns = 0;
    double begin_ns = 0;
    std::uint64_t draws = 0;
};

class Job {
public:
    Job(std::uint32_t count, sidecar::Sampler& sampler, double unimportant_below)
        : capacity_(count / 5 * kSampleBytes),
          sampler_(sampler),
          policy_(count, values_),
          resident_(count, false),
          luck_(1) {
        values_.set_job(1, {.weight = 1, .unimportant_below = unimportant_below, .ranks = [this] {
                                return sampler_.relative_importance();
                            }});
    }

    Figures run_epoch(std::uint64_t epoch, bool full) {
        Figures figures;
        const double start = cpu_ns();
        sampler_.begin_epoch(0, epoch, 0);
        policy_.refresh();
        policy_.hold(full && policy_.resident_bytes() >= capacity_);
        figures.begin_ns = cpu_ns() - start;
        std::uint64_t last = 0;
        do {
            last = figures.draws;
            const double before = cpu_ns();
            step(figures);
            figures.longest_batch_ns = std::max(figures.longest_batch_ns, cpu_ns() - before);
        } while (figures.draws > last);
        figures.ns = cpu_ns() - start;
        return figures;
    }

    [[nodiscard]] std::size_t policy_bytes() const { return policy_.memory_bytes(); }

private:
    void step(Figures& figures) {
        ahead_.clear();
        sampler_.foresee(0, kBatch, ahead_);
        for (const SampleIndex sample : ahead_) {
            if (!resident_[sample]) {
                admit(sample);
            }
        }
        draws_.clear();
        sampler_.draw(0, kBatch, draws_);
        ids_.clear();
        losses_.clear();
        for (const sidecar::Draw& draw : draws_) {
            policy_.on_read(draw.served, resident_[draw.served]);
            ids_.push_back(draw.served);
            losses_.push_back(static_cast<float>(luck_.unit()));
        }
        sampler_.on_losses(0, ids_, losses_);
        figures.draws += draws_.size();
    }

    void admit(SampleIndex sample) {
        if (policy_.resident_bytes() >= capacity_) {
            victims_.clear();
            if (!policy_.make_room(sample, Bytes{kSampleBytes}, Everybody{}, victims_)) {
                return;
            }
            for (const SampleIndex victim : victims_) {
                policy_.on_gone(victim);
                sampler_.on_gone(victim);
                resident_[victim] = false;
            }
        }
        policy_.on_resident(sample, Bytes{kSampleBytes});
        sampler_.on_stored(sample);
        resident_[sample] = true;
    }

    Bytes capacity_;
    sidecar::Sampler& sampler_;
    sidecar::AggregatedImportance values_;
    sidecar::ImportanceEviction policy_;
    std::vector<bool> resident_;
    Prng luck_;
    std::vector<SampleIndex> ahead_;
    std::vector<SampleIndex> victims_;
    std::vector<SampleIndex> ids_;
    std::vector<float> losses_;
    std::vector<sidecar::Draw> draws_;
};

template <class Sampler>
void measure(const char* name, std::uint32_t count, Sampler& sampler, double unimportant_below) {
    Job job(count, sampler, unimportant_below);
    const Figures full = job.run_epoch(0, true);
    const Figures selective = job.run_epoch(7, false);
    const double bytes = static_cast<double>(sampler.memory_bytes() + job.policy_bytes());
    fmt::print(
        "{{\"contract\": \"{}\", \"samples\": {}, \"decide_ns_per_sample\": {:.0f}, "
        "\"decide_ns_per_sample_full_epoch\": {:.0f}, \"policy_bytes_per_sample\": {:.1f}, "
        "\"longest_batch_us\": {:.0f}, \"begin_epoch_ms\": {:.1f}}}\n",
        name,
        count,
        selective.ns / static_cast<double>(selective.draws),
        full.ns / static_cast<double>(full.draws),
        bytes / count,
        selective.longest_batch_ns / 1e3,
        selective.begin_ns / 1e6);
}

void run(std::uint32_t count) {
    const auto importance = *sidecar::ImportanceSampler::create(count, {.seed = 7});
    measure("importance", count, *importance, importance->important_from());
    const auto buckets = *sidecar::BucketSampler::create(count, {.seed = 7, .adapt_rate = false});
    measure("buckets", count, *buckets, 0);
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10000000;
    if (count == 0 || count > 1000000000) {
        fmt::print(stderr, "usage: stoker-bench-decide [SAMPLES]   (1 to 1,000,000,000)\n");
        return 1;
    }
    stoker::bench::run(static_cast<std::uint32_t>(count));
    return 0;
}
