#include "sidecar/simulate/assembly.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "common/base/prng.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/simulate/baselines/belady.h"
#include "sidecar/simulate/baselines/ods.h"
#include "sidecar/simulate/baselines/quiver.h"
#include "sidecar/simulate/catalogue.h"

namespace stoker::simulate {

namespace {

// Separate random streams for the uses of one seed.
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
        parts.outcome.dataset_bytes += Bytes{size};
        records += Bytes{domain::record_bytes(size)};
    }
    const auto share = [](double part, Bytes whole) {
        return Bytes{
            static_cast<std::uint64_t>(std::llround(part * static_cast<double>(whole.count())))};
    };
    const Bytes bytes = cache.bytes == Bytes{} ? share(cache.share, records) : cache.bytes;
    parts.outcome.samples = parts.sizes.size();
    parts.outcome.window_bytes = share(cache.window_share, bytes);
    parts.outcome.resident_bytes = bytes - parts.outcome.window_bytes;
}

std::string uid_of(std::size_t job) {
    return fmt::format("job-{}", job);
}

std::unique_ptr<Losses> make_losses(
    const Scenario& scenario, std::uint64_t samples, std::size_t job) {
    const JobSpec& spec = scenario.jobs[job];
    Losses::Shape shape;
    shape.sigma = value_of(spec, "loss-sigma");
    shape.noise = value_of(spec, "loss-noise");
    shape.scale = value_of(spec, "loss-scale");
    shape.decay = value_of(spec, "loss-decay");
    shape.correlation = scenario.loss_correlation;
    return std::make_unique<Losses>(
        samples, shape, seed_for(scenario, Use::kCommonLosses), job_seed(scenario, job) + 1);
}

// The scenario's eviction policy. nullptr: the contracts choose one.
std::unique_ptr<sidecar::EvictionPolicy> make_policy(const Scenario& scenario, Assembly& parts) {
    const std::string& name = scenario.cache.policy;
    const std::uint64_t samples = parts.sizes.size();
    if (name == "lru") {
        return std::make_unique<sidecar::Lru>();
    }
    if (name == "lfu") {
        return std::make_unique<sidecar::Lfu>();
    }
    if (name == "belady") {
        return std::make_unique<Belady>(
            samples, [samples, seed = job_seed(scenario, 0)](std::uint64_t epoch) {
                return shuffled(samples, seed, epoch);
            });
    }
    if (name == "ods") {
        auto cache = std::make_unique<OdsCache>(
            samples,
            static_cast<std::uint32_t>(scenario.jobs.size()),
            seed_for(scenario, Use::kPolicy));
        parts.ods = cache.get();
        return cache;
    }
    return name.empty() ? nullptr : std::make_unique<sidecar::NeverEvict>();
}

std::unique_ptr<sidecar::Sampler> make_own_order(
    const Scenario& scenario, const Assembly& parts, std::size_t job) {
    const std::uint64_t samples = parts.sizes.size();
    const std::uint64_t seed = job_seed(scenario, job);
    if (scenario.cache.policy == "ods") {
        return std::make_unique<OdsSampler>(
            *parts.ods,
            samples,
            static_cast<std::uint32_t>(policy_value(scenario, "probes")),
            seed);
    }
    if (scenario.cache.policy == "quiver") {
        return std::make_unique<QuiverSampler>(
            parts.node->engine().fetch().residency(),
            samples,
            static_cast<std::uint32_t>(policy_value(scenario, "over-request")),
            seed);
    }
    if (const auto recorded = scenario.jobs[job].recorded) {
        return std::make_unique<sidecar::ExactSampler>(
            sidecar::EpochShape{.count = static_cast<std::uint32_t>(samples)},
            [recorded](std::uint64_t epoch, std::uint32_t /*rank*/) {
                return sidecar::GroupedOrder{recorded->epochs[epoch], {}};
            });
    }
    return std::make_unique<sidecar::ExactSampler>(
        sidecar::EpochShape{.count = static_cast<std::uint32_t>(samples)},
        [samples, seed](std::uint64_t epoch, std::uint32_t /*rank*/) {
            return sidecar::GroupedOrder{shuffled(samples, seed, epoch), {}};
        });
}

// Whether the job's trainer sends its plans to the engine. A baseline is a plain cache that gets no
// plans.
bool knows_plans(const Scenario& scenario, const JobSpec& job) {
    const std::string& policy = scenario.cache.policy;
    return (policy.empty() || policy == "never-evict") && (!job.recorded || job.recorded->plans);
}

void add_job(const Scenario& scenario, Assembly& parts, std::size_t job) {
    const JobSpec& spec = scenario.jobs[job];
    JobRun::Setting setting;
    setting.scenario = &scenario;
    setting.job = job;
    setting.begin.contract = spec.contract;
    setting.begin.job = uid_of(job) + "/train";
    setting.begin.seed = job_seed(scenario, job);
    setting.begin.batch = scenario.batch;
    setting.begin.parameters = parameters_of(spec);
    setting.plans = knows_plans(scenario, spec);
    setting.samples = parts.sizes.size();
    if (spec.contract == "exact") {
        auto& order = parts.orders.emplace_back(make_own_order(scenario, parts, job));
        setting.sampler = order.get();
    } else if (spec.contract != "windowed") {
        setting.losses =
            parts.losses.emplace_back(make_losses(scenario, parts.sizes.size(), job)).get();
    }
    parts.jobs.emplace_back(std::move(setting), *parts.node);
}

}  // namespace

std::vector<std::uint64_t> sizes_of(const DatasetSpec& dataset, std::uint64_t seed) {
    if (!dataset.sizes.empty()) {
        return dataset.sizes;
    }
    std::vector<std::uint64_t> sizes(dataset.samples, dataset.mean_bytes.count());
    if (dataset.sigma > 0) {
        Prng prng{seed};
        // The mean of a log-normal distribution is exp(mu + sigma^2 / 2).
        const double mu = std::log(static_cast<double>(dataset.mean_bytes.count())) -
                          dataset.sigma * dataset.sigma / 2;
        for (std::uint64_t& size : sizes) {
            size = static_cast<std::uint64_t>(std::exp(mu + dataset.sigma * normal(prng))) + 1;
        }
    }
    return sizes;
}

std::unique_ptr<Assembly> assemble(const Scenario& scenario) {
    auto parts = std::make_unique<Assembly>();
    parts->sizes = sizes_of(scenario.dataset, seed_for(scenario, Use::kSizes));
    measure(*parts, scenario.cache);
    VirtualNode::Setting setting;
    setting.sizes = parts->sizes;
    setting.resident_bytes = parts->outcome.resident_bytes;
    setting.window_bytes = parts->outcome.window_bytes;
    setting.origin = scenario.origin;
    setting.eviction = make_policy(scenario, *parts);
    setting.refiller = parts->ods;
    parts->node = std::make_unique<VirtualNode>(std::move(setting));
    sidecar::JobWeights weights;
    for (std::size_t job = 0; job < scenario.jobs.size(); ++job) {
        add_job(scenario, *parts, job);
        // The weight that the operator would send: the TrainingJob's weight times the rate of
        // reading.
        const JobSpec& spec = scenario.jobs[job];
        const bool is_given = spec.parameters.contains("weight");
        weights[uid_of(job)] = (is_given ? value_of(spec, "weight") : 1) * spec.speed;
    }
    parts->node->engine().importance().set_weights(std::move(weights));
    return parts;
}

}  // namespace stoker::simulate
