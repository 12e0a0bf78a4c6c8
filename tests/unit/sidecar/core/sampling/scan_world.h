#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sidecar/core/sampling/windowed_sampler.h"

namespace stoker::test {

using sidecar::SampleIndex;

struct ScanJob {
    double speed = 1.0;  // relative to the fastest job
    double start = 0.0;  // in epochs of a job of speed 1, from the start of the world
};

struct ScanSetting {
    std::uint32_t samples = 10'000;
    double cached = 0.2;  // share of the dataset that the node holds
    double kept = 0.9;    // resident share of that; the rest is the window
    std::uint32_t batch = 50;
    double drift_max = 0.02;
    std::uint32_t lookahead_max = 256;
    std::uint32_t latency = 0;  // draws of all jobs until a fetch arrives
    std::uint64_t seed = 1;
};

// Simulates jobs that share one scan on a node. The store is one state per sample, without bytes.
// Jobs read one batch at a time, interleaved by speed, until one of them has read `epochs`. Fetches
// follow the feed; a window sample is dropped when no reader needs it, or earlier if the window is
// full.
class ScanWorld {
public:
    ScanWorld(const ScanSetting& setting, const std::vector<ScanJob>& jobs);

    void run(std::uint64_t epochs);

    struct Totals {
        double fetched_per_job_epoch = 0;  // share of the dataset, without the first epoch
        std::uint64_t fetches = 0;
        std::uint64_t evictions = 0;
        std::uint64_t window_max = 0;
        std::uint64_t repeats = 0;      // samples that a job got more than once in an epoch
        std::uint64_t missed = 0;       // samples that a job did not get in an epoch
        std::uint64_t full_epochs = 0;  // over all jobs
        double resident_drift = 0;      // largest deviation from the even mix, share of an epoch
    };

    [[nodiscard]] const Totals& totals() const { return totals_; }

    // The first job's samples, epoch by epoch.
    [[nodiscard]] const std::vector<std::vector<SampleIndex>>& orders() const { return orders_; }

    [[nodiscard]] bool is_resident(SampleIndex sample) const {
        return stored_[sample] == Stored::kResident;
    }

private:
    enum class Stored : std::uint8_t { kNo, kComing, kWindow, kResident };

    struct Job {
        ScanJob setting;
        std::unique_ptr<sidecar::WindowedSampler> sampler;
        double next_at = 0;
        std::uint64_t epoch = 0;
        std::uint64_t batches = 0;
        std::uint64_t position = 0;
        std::uint64_t residents_read = 0;
        std::vector<std::uint8_t> seen;
    };

    struct Arrival {
        std::uint64_t at = 0;
        SampleIndex sample = 0;
    };

    void step(Job& job);
    void begin(Job& job);
    void end_epoch(Job& job);
    void read(Job& job, SampleIndex sample);
    void fetch();
    void arrive(SampleIndex sample);
    void make_room();
    void drop_if_unneeded(SampleIndex sample);

    ScanSetting setting_;
    sidecar::SharedScan scan_;
    std::vector<Job> jobs_;
    std::vector<Stored> stored_;
    std::deque<Arrival> arrivals_;
    std::uint64_t resident_ = 0;
    std::uint64_t window_ = 0;
    std::uint64_t resident_max_ = 0;
    std::uint64_t window_max_ = 0;
    std::uint64_t draws_ = 0;
    double measured_job_epochs_ = 0;
    std::uint64_t measured_from_ = 0;
    bool measuring_ = false;
    Totals totals_;
    std::vector<std::vector<SampleIndex>> orders_;
};

}  // namespace stoker::test
