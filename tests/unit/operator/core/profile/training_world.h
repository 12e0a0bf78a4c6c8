#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "operator/core/profile/profiler.h"

namespace stoker::control {

// A simulated job and its sidecars' reports: `ranks` trainers that together could read `ingest`
// bytes/s, an origin that gives `origin` bytes/s, and a share `miss` of the bytes that is not on
// the nodes. The test advances the time.
struct TrainingWorld {
    double ingest = 400e6;
    double origin = 100e6;
    double miss = 1;
    std::size_t rank_count = 2;
    Bytes granted{};
    double sample_bytes = 100e3;
    double seconds = 0;
    std::vector<SidecarReport> ranks{};

    // The trainers compute and fetch at the same time. The noises are factors on the trainers' and
    // the origin's rates.
    void run(double for_seconds, double ingest_noise = 1, double origin_noise = 1) {
        ranks.resize(rank_count);
        seconds += for_seconds;
        const double could_compute = ingest * ingest_noise;
        const double could_fetch = miss > 0 ? origin * origin_noise / miss : could_compute;
        const double read = std::min(could_compute, could_fetch) * for_seconds;
        const double computing = std::min(read / could_compute, for_seconds);
        for (std::size_t i = 0; i < rank_count; ++i) {
            add(ranks[i], i, read, computing, for_seconds - computing);
        }
    }

    // Makes the reports for time `at`.
    void report_at(double at) {
        seconds = at;
        for (SidecarReport& report : ranks) {
            report.received_at = TimePoint{in_duration(seconds)};
        }
    }

    [[nodiscard]] ProfileInput input() const { return {ranks, ranks, rank_count, granted}; }

private:
    static void grow(Bytes& total, double by) {
        total += Bytes{static_cast<std::uint64_t>(std::max(by, 0.0))};
    }

    static Duration in_duration(double time) {
        return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time));
    }

    void add(
        SidecarReport& report, std::size_t rank, double read, double compute, double wait) const {
        const auto share = read / static_cast<double>(rank_count);
        report.pod = "pod-" + std::to_string(rank);
        report.node = "node-" + std::to_string(rank);
        report.received_at = TimePoint{in_duration(seconds)};
        grow(report.trainer.bytes, share);
        report.trainer.samples += static_cast<std::uint64_t>(share / sample_bytes);
        report.trainer.compute += in_duration(compute);
        report.trainer.wait += in_duration(wait);
        report.datasets.resize(1);
        DatasetReport& dataset = report.datasets[0];
        dataset.dataset_uid = "uid";
        dataset.leader = true;
        grow(dataset.origin_bytes_read, share * miss);
        const auto requests = static_cast<std::uint64_t>(share * miss / sample_bytes);
        dataset.origin_requests += requests;
        dataset.origin_request_time += std::chrono::milliseconds{20} * requests;
    }
};

}  // namespace stoker::control
