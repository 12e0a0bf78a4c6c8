#include "sidecar/simulate/random_workload.h"

#include <algorithm>
#include <cmath>

namespace stoker::simulate {

namespace {

constexpr std::uint64_t kSlicedFrom = 65'536;  // samples; see RandomWorkload
constexpr std::uint64_t kReadsMax = 2'000'000;

}  // namespace

RandomWorkload::RandomWorkload(std::uint64_t seed)
    : prng_(Prng{seed}()),
      parameters_(fmt::format("seed={}", seed)) {}

std::uint64_t RandomWorkload::count(const char* name, std::uint64_t least, std::uint64_t most) {
    const double span = std::log(static_cast<double>(most + 1) / static_cast<double>(least));
    const auto drawn =
        static_cast<std::uint64_t>(static_cast<double>(least) * std::exp(prng_.unit() * span));
    return note(name, std::clamp(drawn, least, most));
}

double RandomWorkload::number(const char* name, double least, double most) {
    return note(name, std::round(1000 * (least + prng_.unit() * (most - least))) / 1000);
}

std::uint64_t RandomWorkload::samples(std::uint64_t least, std::uint64_t most) {
    const bool sliced = most > kSlicedFrom && prng_.below(2) == 0;
    return sliced ? count("N", kSlicedFrom, most)
                  : count("N", least, std::min(most, kSlicedFrom - 1));
}

Scenario RandomWorkload::one_job(std::uint64_t samples_min, std::uint64_t samples_max) {
    Scenario scenario;
    scenario.seed = seed();
    scenario.dataset.samples = samples(samples_min, samples_max);
    scenario.cache.share = 0;
    return scenario;
}

void RandomWorkload::draw_jobs(Scenario& scenario, std::uint64_t least) {
    scenario.jobs.assign(count("J", least, 4), scenario.jobs[0]);
}

void RandomWorkload::draw_loader(Scenario& scenario) {
    scenario.ahead = static_cast<std::uint32_t>(count("ahead", 1, 8));
    const std::uint64_t most =
        scenario.dataset.samples / (50 * scenario.jobs.size() * (scenario.ahead + 1));
    scenario.batch =
        static_cast<std::uint32_t>(count("batch", 1, std::clamp<std::uint64_t>(most, 1, 512)));
}

void RandomWorkload::draw_share(Scenario& scenario, double least, double most) {
    scenario.cache.share = number("w", least, most);
}

void RandomWorkload::draw_sizes(Scenario& scenario) {
    scenario.dataset.mean_bytes = kib(count("KiB", 4, 256));
    if (prng_.below(2) == 0) {
        scenario.dataset.sigma = number("sigma", .3, 1.2);
    }
}

void RandomWorkload::draw_epochs(Scenario& scenario, double p) {
    const double reads = 160'000 * (1 - p) / p;
    const double epochs = std::ceil(reads / static_cast<double>(scenario.dataset.samples));
    const std::uint64_t most = kReadsMax / scenario.dataset.samples;
    scenario.epochs = scenario.discard +
                      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
                          static_cast<std::uint64_t>(epochs), 2, std::max<std::uint64_t>(most, 2)));
}

}  // namespace stoker::simulate
