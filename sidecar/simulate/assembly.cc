#include "sidecar/simulate/assembly.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/eviction/lfu.h"
#include "sidecar/core/eviction/lru.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/chunk_order.h"
#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/core/sampling/windowed_sampler.h"
#include "sidecar/simulate/baselines/belady.h"
#include "sidecar/simulate/baselines/ods.h"
#include "sidecar/simulate/baselines/quiver.h"
#include "sidecar/simulate/catalogue.h"
#include "sidecar/simulate/trainer_shuffle.h"

namespace stoker::simulate {

namespace {

// What a job foresees, as in the sidecar (sidecar/service/sampling_desk.cc).
constexpr std::uint32_t kPlanBatches = 16;  // at least
constexpr std::uint32_t kPlanMin = 2048;
constexpr std::uint32_t kPlanMax = 16384;

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

bool is_important(const JobSpec& job) {
    return job.contract == "importance";
}

// Leaves a full cache alone while every job reads everything, and takes over new values when a job
// has ranked its samples anew: those of the iCACHE family as they are, those of others as they were
// when the epoch began, as the sidecar does (sidecar/service/shared_importance.h).
class ImportanceFeed final : public PolicyFeed {
public:
    ImportanceFeed(sidecar::ImportanceEviction& policy, std::size_t jobs)
        : policy_(policy),
          jobs_(jobs) {}

    void watch(
        std::size_t job,
        double weight,
        const sidecar::Sampler& sampler,
        sidecar::AggregatedImportance& importance) {
        Watched& watched = jobs_[job];
        watched.sampler = dynamic_cast<const sidecar::ImportanceSampler*>(&sampler);
        watched.other = watched.sampler == nullptr ? &sampler : nullptr;
        sidecar::AggregatedImportance::Job values;
        values.weight = weight;
        if (watched.sampler != nullptr) {
            values.unimportant_below = watched.sampler->important_from();
            values.ranks = [&sampler] { return sampler.relative_importance(); };
        } else {
            values.ranks = [&ranks = watched.ranks] { return std::span<const float>{ranks}; };
        }
        importance.set_job(job, std::move(values));
    }

    void on_epoch(std::size_t job, std::uint64_t epoch) override {
        Watched& watched = jobs_[job];
        if (watched.other != nullptr) {
            const auto ranks = watched.other->relative_importance();
            watched.ranks.assign(ranks.begin(), ranks.end());
            watched.full = epoch == 0;
        } else {
            watched.full = watched.sampler == nullptr || watched.sampler->is_full(epoch);
        }
        policy_.hold(std::ranges::all_of(jobs_, &Watched::full));
        if (watched.other != nullptr) {
            policy_.refresh();
        }
    }

    void on_batch(std::size_t job) override {
        Watched& watched = jobs_[job];
        if (watched.sampler != nullptr &&
            std::exchange(watched.revision, watched.sampler->importance_revision()) !=
                watched.revision) {
            policy_.refresh();
        }
    }

    void on_losses(std::size_t, std::span<const SampleIndex>) override {}

private:
    struct Watched {
        const sidecar::ImportanceSampler* sampler = nullptr;
        const sidecar::Sampler* other = nullptr;  // of another family, with its ranks
        std::vector<float> ranks;
        std::uint64_t revision = 0;
        bool full = true;
    };

    sidecar::ImportanceEviction& policy_;
    std::vector<Watched> jobs_;
};

// Hands the scores of the first replicating job to its eviction policy.
class ReplicateFeed final : public PolicyFeed {
public:
    explicit ReplicateFeed(sidecar::ReplicateEviction& policy)
        : policy_(policy) {}

    void watch(std::size_t job, const sidecar::ReplicateSampler& sampler) {
        if (sampler_ == nullptr) {
            job_ = job;
            sampler_ = &sampler;
        }
    }

    void on_epoch(std::size_t, std::uint64_t) override {}

    void on_batch(std::size_t) override {}

    void on_losses(std::size_t job, std::span<const SampleIndex> samples) override {
        if (sampler_ == nullptr || job != job_) {
            return;
        }
        for (const SampleIndex sample : samples) {
            policy_.on_score(sample, sampler_->score(sample));
        }
    }

private:
    sidecar::ReplicateEviction& policy_;
    const sidecar::ReplicateSampler* sampler_ = nullptr;
    std::size_t job_ = 0;
};

void make_importance_policy(const Scenario& scenario, Assembly& parts) {
    sidecar::ImportanceEviction::Settings settings;
    settings.unimportant_share = policy_value(scenario, "l-share");
    const auto [least, most] = std::ranges::minmax(parts.sizes);
    sidecar::AggregatedImportance::SizeOf size_of;
    if (least != most) {
        size_of = [&parts](SampleIndex sample) { return Bytes{parts.sizes[sample]}; };
    }
    parts.importance = std::make_unique<sidecar::AggregatedImportance>(std::move(size_of));
    auto policy = std::make_unique<sidecar::ImportanceEviction>(
        static_cast<std::uint32_t>(parts.sizes.size()), *parts.importance, settings);
    parts.feed = std::make_unique<ImportanceFeed>(*policy, scenario.jobs.size());
    parts.policy = std::move(policy);
}

void make_policy(const Scenario& scenario, Assembly& parts) {
    const std::string name = policy_of(scenario);
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
    } else if (name == "replicate") {
        auto policy =
            std::make_unique<sidecar::ReplicateEviction>(static_cast<std::uint32_t>(samples));
        parts.feed = std::make_unique<ReplicateFeed>(*policy);
        parts.policy = std::move(policy);
    } else if (name == "importance") {
        make_importance_policy(scenario, parts);
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

sidecar::ImportanceSettings importance_settings(const JobSpec& job, std::uint64_t seed) {
    const auto count = [&job](std::string_view name) {
        return static_cast<std::uint32_t>(value_of(job, name));
    };
    sidecar::ImportanceSettings settings;
    settings.seed = seed;
    settings.beta = value_of(job, "beta");
    settings.important_share = value_of(job, "h-share");
    settings.warmup = count("warmup");
    settings.reuse_factor = count("reuse");
    settings.ring = count("ring");
    settings.substitute = count("substitute") != 0;
    settings.package = count("package");
    settings.horizon = count("horizon");
    return settings;
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

sidecar::BucketSettings bucket_settings(
    const JobSpec& job, const Assembly& parts, std::uint64_t seed) {
    sidecar::BucketSettings settings;
    settings.seed = seed;
    // The two families share the flag and not its default.
    settings.warmup = job.parameters.contains("warmup")
                          ? static_cast<std::uint64_t>(value_of(job, "warmup"))
                          : settings.warmup;
    settings.out_rate = value_of(job, "out-rate");
    settings.adapt_rate = value_of(job, "adapt-rate") != 0;
    settings.min_fraction = value_of(job, "min-fraction");
    settings.stagnation = static_cast<std::uint32_t>(value_of(job, "recall-after"));
    settings.recall_fraction = value_of(job, "recall-fraction");
    const auto [least, most] = std::ranges::minmax(parts.sizes);
    if (least != most) {
        settings.criteria.size_of = [&parts](SampleIndex sample) {
            return Bytes{parts.sizes[sample]};
        };
    }
    return settings;
}

// What the job measures takes part in what is kept, where that goes by importance.
void weigh_in(
    const Scenario& scenario, Assembly& parts, std::size_t job, const sidecar::Sampler& sampler) {
    if (parts.importance != nullptr) {
        const double weight = value_of(scenario.jobs[job], "weight");
        static_cast<ImportanceFeed&>(*parts.feed).watch(job, weight, sampler, *parts.importance);
    }
}

// Samples that are fetched ahead where there is room. Without a window, which no sidecar is, only
// what stays can wait for its read: so little is known to come that all of it may find a place.
std::uint32_t foresight(const Scenario& scenario, const Assembly& parts) {
    return parts.window_bytes == Bytes{}
               ? scenario.batch * (scenario.ahead + 2)
               : std::clamp(kPlanBatches * scenario.batch, kPlanMin, kPlanMax);
}

Result<JobParts> make_important(const Scenario& scenario, Assembly& parts, std::size_t job) {
    const JobSpec& spec = scenario.jobs[job];
    const std::uint64_t seed = job_seed(scenario, job);
    JobParts made;
    if (value_of(spec, "family") == 1) {
        STOKER_TRY(
            made.sampler,
            sidecar::BucketSampler::create(
                sample_count(parts), bucket_settings(spec, parts, seed)));
    } else {
        STOKER_TRY(
            made.sampler,
            sidecar::ImportanceSampler::create(
                sample_count(parts), importance_settings(spec, seed)));
    }
    weigh_in(scenario, parts, job, *made.sampler);
    made.losses = make_losses(scenario, parts.sizes.size(), job);
    made.foresight = foresight(scenario, parts);
    return made;
}

Result<JobParts> make_replicating(const Scenario& scenario, Assembly& parts, std::size_t job) {
    sidecar::ReplicateOptions options;
    options.seed = job_seed(scenario, job);
    options.bias = value_of(scenario.jobs[job], "bias");
    options.replication = value_of(scenario.jobs[job], "replication");
    options.warmup_epochs = static_cast<std::uint32_t>(value_of(scenario.jobs[job], "warmup"));
    options.unseen_score = value_of(scenario.jobs[job], "unseen-score");
    STOKER_TRY(auto sampler, sidecar::ReplicateSampler::make(sample_count(parts), options, {}));
    if (policy_of(scenario) == "replicate") {
        static_cast<ReplicateFeed&>(*parts.feed).watch(job, *sampler);
    }
    weigh_in(scenario, parts, job, *sampler);
    JobParts made;
    made.sampler = std::move(sampler);
    made.losses = make_losses(scenario, parts.sizes.size(), job);
    const auto plan = static_cast<std::uint32_t>(value_of(scenario.jobs[job], "plan"));
    made.plan = plan == 0 ? 0 : std::max(plan, kPlanBatches * scenario.batch);
    return made;
}

// Neighbours make chunks; groups of chunks are shuffled together.
std::unique_ptr<sidecar::Sampler> make_chunked(
    const JobSpec& job, std::uint32_t samples, std::uint64_t seed) {
    const auto chunk = static_cast<std::uint32_t>(value_of(job, "chunk-samples"));
    const auto group = static_cast<std::uint32_t>(value_of(job, "chunk-group"));
    std::vector<std::uint32_t> chunk_of(samples);
    for (SampleIndex sample = 0; sample < samples; ++sample) {
        chunk_of[sample] = sample / chunk;
    }
    const sidecar::EpochShape shape{.count = samples, .seed = seed};
    const std::uint32_t chunks = (samples - 1) / chunk + 1;
    return std::make_unique<sidecar::ExactSampler>(
        shape,
        sidecar::World{},
        [chunk_of = std::move(chunk_of), chunks, group, seed](std::uint64_t epoch) {
            return sidecar::chunk_order(chunk_of, chunks, group, seed, epoch);
        });
}

JobParts make_exact(const Scenario& scenario, const Assembly& parts, std::size_t job) {
    const std::uint64_t samples = parts.sizes.size();
    const std::uint64_t seed = job_seed(scenario, job);
    const std::string policy = policy_of(scenario);
    JobParts made;
    made.reads_all = true;
    if (policy == "ods") {
        made.sampler = std::make_unique<OdsSampler>(
            static_cast<const OdsCache&>(*parts.policy),
            samples,
            static_cast<std::uint32_t>(policy_value(scenario, "probes")),
            seed);
    } else if (policy == "quiver") {
        made.sampler = std::make_unique<QuiverSampler>(
            samples, static_cast<std::uint32_t>(policy_value(scenario, "over-request")), seed);
    } else if (value_of(scenario.jobs[job], "chunk-group") > 0) {
        made.sampler = make_chunked(scenario.jobs[job], sample_count(parts), seed);
    } else {
        made.sampler = std::make_unique<TrainerShuffle>(samples, seed);
    }
    return made;
}

Result<JobParts> make_job(const Scenario& scenario, Assembly& parts, std::size_t job) {
    if (scenario.jobs[job].contract == "windowed") {
        return make_windowed(scenario, parts, job);
    }
    if (scenario.jobs[job].contract == "replicate") {
        return make_replicating(scenario, parts, job);
    }
    if (is_important(scenario.jobs[job])) {
        return make_important(scenario, parts, job);
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

Result<std::unique_ptr<Assembly>> assemble(const Scenario& scenario) {
    auto parts = std::make_unique<Assembly>();
    parts->sizes = sizes_of(scenario.dataset, seed_for(scenario, Use::kSizes));
    measure(*parts, scenario.cache);
    make_policy(scenario, *parts);
    make_scan(scenario, *parts);
    for (std::size_t job = 0; job < scenario.jobs.size(); ++job) {
        STOKER_TRY(auto made, make_job(scenario, *parts, job));
        parts->jobs.push_back(std::move(made));
    }
    return parts;
}

}  // namespace stoker::simulate
