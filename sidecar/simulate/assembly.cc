#include "sidecar/simulate/assembly.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/lfu.h"
#include "sidecar/core/eviction/lru.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/sampling/windowed_sampler.h"
#include "sidecar/simulate/baselines/belady.h"
#include "sidecar/simulate/baselines/ods.h"
#include "sidecar/simulate/baselines/quiver.h"
#include "sidecar/simulate/catalogue.h"
#include "sidecar/simulate/trainer_shuffle.h"

namespace stoker::simulate {

namespace {

// Different streams of luck for different uses of one seed.
enum class Use : std::uint64_t { kSizes = 1, kPolicy, kCommonLosses, kFirstJob = 1000 };

std::uint64_t seed_for(const Scenario& scenario, Use use, std::uint64_t offset = 0) {
    return Prng{Prng{scenario.seed}() + static_cast<std::uint64_t>(use) + offset}();
}

std::uint64_t job_seed(const Scenario& scenario, std::size_t job) {
    return seed_for(scenario, Use::kFirstJob, job);
}

void measure(Assembly& parts, const CacheSpec& cache) {
    Bytes records{};
    for (const std::uint64_t size : parts.sizes) {
        parts.dataset_bytes += Bytes{size};
        records += Bytes{domain::record_bytes(size)};
    }
    const auto share = [](double part, Bytes whole) {
        return Bytes{
            static_cast<std::uint64_t>(std::llround(part * static_cast<double>(whole.count())))};
    };
    const Bytes bytes = cache.bytes == Bytes{} ? share(cache.share, records) : cache.bytes;
    parts.window_bytes = share(cache.window_share, bytes);
    parts.resident_bytes = bytes - parts.window_bytes;
}

std::string policy_name(const Scenario& scenario) {
    return scenario.cache.policy.empty() ? "never-evict" : scenario.cache.policy;
}

void make_policy(const Scenario& scenario, Assembly& parts) {
    const std::string name = policy_name(scenario);
    const std::uint64_t samples = parts.sizes.size();
    if (name == "lru") {
        parts.policy = std::make_unique<sidecar::Lru>();
    } else if (name == "lfu") {
        parts.policy = std::make_unique<sidecar::Lfu>();
    } else if (name == "belady") {
        const std::uint64_t seed = job_seed(scenario, 0);
        parts.policy = std::make_unique<Belady>(samples, [samples, seed](std::uint64_t epoch) {
            return shuffled(samples, seed, epoch);
        });
    } else if (name == "ods") {
        auto cache = std::make_unique<OdsCache>(
            samples,
            static_cast<std::uint32_t>(scenario.jobs.size()),
            seed_for(scenario, Use::kPolicy));
        parts.background = cache.get();
        parts.policy = std::move(cache);
    } else {
        parts.policy = std::make_unique<sidecar::NeverEvict>();
    }
}

std::uint32_t sample_count(const Assembly& parts) {
    return static_cast<std::uint32_t>(parts.sizes.size());
}

// All windowed jobs share one scan; the first of them says how it goes.
void make_scan(const Scenario& scenario, Assembly& parts) {
    const auto first = std::ranges::find(scenario.jobs, "windowed", &JobSpec::contract);
    if (first == scenario.jobs.end()) {
        return;
    }
    const std::uint64_t mean_record =
        domain::record_bytes(parts.dataset_bytes.count() / parts.sizes.size());
    sidecar::ScanLimits limits;
    limits.window_samples = static_cast<std::uint32_t>(parts.window_bytes.count() / mean_record);
    limits.lookahead_max = static_cast<std::uint32_t>(value_of(*first, "lookahead"));
    limits.drift_max = value_of(*first, "drift");
    parts.scan = std::make_unique<sidecar::SharedScan>(
        sample_count(parts), limits, seed_for(scenario, Use::kPolicy));
}

Result<JobParts> make_windowed(const Scenario& scenario, Assembly& parts, std::size_t job) {
    sidecar::EpochShape shape;
    shape.count = sample_count(parts);
    shape.seed = job_seed(scenario, job);
    JobParts made;
    made.reads_all = true;
    made.foresight = static_cast<std::uint32_t>(value_of(scenario.jobs[job], "lookahead"));
    STOKER_TRY(made.sampler, sidecar::WindowedSampler::make(*parts.scan, shape, {}));
    return made;
}

JobParts make_exact(const Scenario& scenario, const Assembly& parts, std::size_t job) {
    const std::uint64_t samples = parts.sizes.size();
    const std::uint64_t seed = job_seed(scenario, job);
    const std::string policy = policy_name(scenario);
    JobParts made;
    made.reads_all = true;
    if (policy == "ods") {
        made.sampler = std::make_unique<OdsSampler>(
            static_cast<const OdsCache&>(*parts.policy),
            samples,
            static_cast<std::uint32_t>(value_of(scenario.cache, "probes")),
            seed);
    } else if (policy == "quiver") {
        made.sampler = std::make_unique<QuiverSampler>(
            samples, static_cast<std::uint32_t>(value_of(scenario.cache, "over-request")), seed);
    } else {
        made.sampler = std::make_unique<TrainerShuffle>(samples, seed);
    }
    return made;
}

Result<JobParts> make_job(const Scenario& scenario, Assembly& parts, std::size_t job) {
    if (scenario.jobs[job].contract == "windowed") {
        return make_windowed(scenario, parts, job);
    }
    return make_exact(scenario, parts, job);
}

}  // namespace

std::vector<std::uint64_t> sizes_of(const DatasetSpec& dataset, std::uint64_t seed) {
    if (!dataset.sizes.empty()) {
        return dataset.sizes;
    }
    std::vector<std::uint64_t> sizes(dataset.samples, dataset.mean_bytes.count());
    if (dataset.sigma > 0) {
        Prng prng{seed};
        // A log-normal's mean is exp(mu + sigma^2 / 2).
        const double mu = std::log(static_cast<double>(dataset.mean_bytes.count())) -
                          dataset.sigma * dataset.sigma / 2;
        for (std::uint64_t& size : sizes) {
            size = static_cast<std::uint64_t>(std::exp(mu + dataset.sigma * normal(prng))) + 1;
        }
    }
    return sizes;
}

Result<Assembly> assemble(const Scenario& scenario) {
    Assembly parts;
    parts.sizes = sizes_of(scenario.dataset, seed_for(scenario, Use::kSizes));
    measure(parts, scenario.cache);
    make_policy(scenario, parts);
    make_scan(scenario, parts);
    for (std::size_t job = 0; job < scenario.jobs.size(); ++job) {
        STOKER_TRY(auto made, make_job(scenario, parts, job));
        parts.jobs.push_back(std::move(made));
    }
    return parts;
}

}  // namespace stoker::simulate
