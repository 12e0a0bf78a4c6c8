// Law T11: the size of IOWA's bucket, epoch by epoch, and what is read from the origin.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "sidecar/simulate/law_checks.h"

namespace stoker::simulate {

namespace {

constexpr double kCache = .2;
constexpr std::uint32_t kEpochs = 12;

struct Shrinking {
    double out_rate;
    double decay;  // of all losses, per epoch
    double min_fraction;
};

// B_0 to B_11: the bucket's size in epochs 0 to 11, as a share of the dataset, if all samples read
// in epoch e have the loss (1-decay)^e. Each epoch begins by moving a part of the bucket out: the
// fraction out_rate x learnt, where learnt = 1 - (mean of all samples' last losses). At least the
// share min_fraction of the dataset stays.
std::vector<double> bucket_sizes(const Shrinking& job) {
    std::vector<double> sizes = {1};
    double outside = 0;  // losses of the samples outside, per sample of the dataset
    for (std::uint32_t epoch = 1; epoch < kEpochs; ++epoch) {
        const double before = sizes.back();
        const double loss = std::pow(1 - job.decay, epoch - 1);
        const double learnt = std::clamp(1 - before * loss - outside, 0.0, 1.0);
        const double out = std::min(job.out_rate * learnt * before, before - job.min_fraction);
        outside += out * loss;
        sizes.push_back(before - out);
    }
    return sizes;
}

Scenario iowa_scenario(const Shrinking& job) {
    Scenario scenario;
    scenario.cache.share = kCache;
    scenario.ahead = 0;
    scenario.epochs = kEpochs;
    scenario.jobs[0].contract = "importance";
    scenario.jobs[0].parameters = {
        {"family", 1},
        {"out-rate", job.out_rate},
        {"min-fraction", job.min_fraction},
        {"recall-after", 100},
        {"loss-decay", job.decay},
        {"loss-sigma", 0},
        {"loss-noise", 0}};
    return scenario;
}

}  // namespace

std::vector<LawRow> check_buckets() {
    std::vector<LawRow> rows;
    for (const Shrinking& job : {Shrinking{.1, .1, .3}, {.3, .3, .3}, {.5, .2, .1}}) {
        const auto expected = bucket_sizes(job);
        const Outcome outcome = run_law(iowa_scenario(job));
        for (const std::size_t epoch : {2U, 5U, kEpochs - 1U}) {
            const auto share = [&](std::uint64_t samples) {
                return static_cast<double>(samples) / static_cast<double>(outcome.samples);
            };
            const EpochFigures& measured = outcome.jobs[0].epochs[epoch];
            const std::string parameters = fmt::format(
                "out-rate={} decay={} min-fraction={} epoch={}",
                job.out_rate,
                job.decay,
                job.min_fraction,
                epoch);
            rows.push_back(
                {"share in IOWA's bucket",
                 parameters,
                 within(expected[epoch], .002),
                 share(measured.requested)});
            // All residents were in the previous epoch's bucket; those that have left the bucket
            // are displaced once no plan needs them.
            rows.push_back(
                {"fetched by IOWA, B_k - w B_k/B_(k-1)",
                 parameters,
                 within(expected[epoch] * std::max(0.0, 1 - kCache / expected[epoch - 1]), .01),
                 share(measured.origin_samples)});
        }
    }
    return rows;
}

}  // namespace stoker::simulate
