// `stoker laws --random`: workloads at random parameters with the simulator on the real engine.
// Laws T1 to T13: docs/reference/simulate.md.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "common/base/check.h"
#include "sidecar/simulate/catalogue.h"
#include "sidecar/simulate/clairvoyance.h"
#include "sidecar/simulate/law_checks.h"
#include "sidecar/simulate/random_workload.h"

namespace stoker::simulate {

namespace {

// Origin bytes of all jobs per job and epoch, as a share of the dataset.
double origin_share(const Outcome& outcome, const Scenario& scenario) {
    double sum = 0;
    for (std::size_t job = 0; job < outcome.jobs.size(); ++job) {
        sum += means_of(outcome, job, scenario.discard).origin_bytes;
    }
    return sum / static_cast<double>(outcome.jobs.size());
}

// As law T1, for several jobs: a cache that never evicts saves its share of every exact epoch, and
// none can save more. Jobs with different orders do not help each other, except that a fetch in
// flight may serve two.
LawRow never_evict(RandomWorkload& random) {
    Scenario scenario = random.one_job();
    random.draw_jobs(scenario, 1);
    random.draw_sizes(scenario);
    random.draw_loader(scenario);
    random.draw_share(scenario, .05, .9);
    const double jobs = static_cast<double>(scenario.jobs.size());
    const double missing = 1 - scenario.cache.share;
    return random.row(
        "origin bytes, never-evict",
        about(missing).floor((1 - kSlack) * missing / jobs),
        origin_share(run_law(scenario), scenario));
}

// As law T1: with a share w of the dataset in the cache, LRU misses (1-w)(1 - ln(1-w)) of the
// requests. No policy misses less than 1-w.
LawRow lru(RandomWorkload& random) {
    Scenario scenario = random.one_job();
    random.draw_loader(scenario);
    random.draw_share(scenario, .05, .9);
    scenario.cache.policy = "lru";
    const double absent = 1 - scenario.cache.share;
    const double missing = absent * (1 - std::log(absent));
    scenario.discard = 2;
    random.draw_epochs(scenario, missing);
    return random.row(
        "misses of LRU",
        about(missing).floor((1 - kSlack) * absent),
        1 - means_of(run_law(scenario), 0, scenario.discard).hit_ratio);
}

// As law T1: Belady's policy, which knows all future reads, misses 1-w of the requests if the share
// w of the dataset is in the cache. No policy misses less.
LawRow belady(RandomWorkload& random) {
    Scenario scenario = random.one_job();
    random.draw_loader(scenario);
    random.draw_share(scenario, .05, .9);
    scenario.cache.policy = "belady";
    scenario.discard = 2;
    scenario.epochs = 4;
    const double missing = 1 - scenario.cache.share;
    return random.row(
        "misses of Belady",
        about(missing).floor((1 - kSlack) * missing),
        1 - means_of(run_law(scenario), 0, scenario.discard).hit_ratio);
}

// A window for four times what all jobs have drawn and not read yet, so that none waits for room.
void draw_window(RandomWorkload& random, Scenario& scenario) {
    const auto drawn = static_cast<double>(
        scenario.jobs.size() * scenario.batch * (std::uint64_t{scenario.ahead} + 1));
    const double least =
        4 * drawn / static_cast<double>(scenario.dataset.samples) / scenario.cache.share;
    scenario.cache.window_share = random.number("window", std::min(.5, least), .6);
}

// As law T9: J windowed jobs in lock-step fetch each sample that is not resident once for all of
// them.
LawRow lock_step(RandomWorkload& random) {
    Scenario scenario = random.one_job();
    random.draw_jobs(scenario, 1);
    random.draw_sizes(scenario);
    random.draw_loader(scenario);
    random.draw_share(scenario, .1, .9);
    for (JobSpec& job : scenario.jobs) {
        job.contract = "windowed";
    }
    draw_window(random, scenario);
    const double jobs = static_cast<double>(scenario.jobs.size());
    const double resident = scenario.cache.share * (1 - scenario.cache.window_share);
    const double fetched = (1 - resident) / jobs;
    return random.row(
        "origin bytes, windowed in lock-step",
        about(fetched).floor((1 - kSlack) * (1 - scenario.cache.share) / jobs),
        origin_share(run_law(scenario), scenario));
}

// As law T9 at unequal speeds: residents are fetched once in the whole run, each other sample once
// per epoch of the fastest job. The formula uses the measured numbers of epochs.
LawRow unequal_speeds(RandomWorkload& random) {
    Scenario scenario = random.one_job(1000, 100'000);
    random.draw_jobs(scenario, 2);
    random.draw_sizes(scenario);
    random.draw_loader(scenario);
    random.draw_share(scenario, .1, .6);
    draw_window(random, scenario);
    scenario.until_first_ends = true;
    scenario.epochs = 6;
    scenario.origin.bytes_per_second = Bytes{100'000'000'000};
    for (JobSpec& job : scenario.jobs) {
        job.contract = "windowed";
        job.speed = random.number("v", .4, 1);
    }
    const Outcome outcome = run_law(scenario);
    double sum = 0;
    double most = 0;
    Bytes fetched;
    for (const JobFigures& job : outcome.jobs) {
        double epochs = 0;
        for (const EpochFigures& epoch : job.epochs) {
            epochs += static_cast<double>(epoch.requested) / static_cast<double>(outcome.samples);
            fetched += epoch.origin_bytes;
        }
        sum += epochs;
        most = std::max(most, epochs);
    }
    const auto fetches = [&](double kept) { return (kept + (1 - kept) * most) / sum; };
    const double cached = scenario.cache.share;
    return random.row(
        "origin bytes per epoch, windowed at unequal speeds",
        at_most(1.1 * fetches(cached * (1 - scenario.cache.window_share)))
            .floor((1 - kSlack) * fetches(cached)),
        static_cast<double>(fetched.count()) / static_cast<double>(outcome.dataset_bytes.count()) /
            sum);
}

// One job with contract importance; the means are over whole cycles of full and selective epochs,
// after the warm-up and at least `settled` epochs.
Scenario importance_job(
    RandomWorkload& random, double beta_max, std::uint64_t samples_max, std::uint64_t settled) {
    Scenario scenario = random.one_job(1000, samples_max);
    random.draw_loader(scenario);
    JobSpec& job = scenario.jobs[0];
    job.contract = "importance";
    const double beta = random.number("beta", .1, beta_max);
    const std::uint64_t reuse = random.count("reuse", 2, 4);
    job.parameters["beta"] = beta;
    job.parameters["warmup-epochs"] = static_cast<double>(random.count("warmup", 1, 3));
    job.parameters["reuse-factor"] = static_cast<double>(reuse);
    job.parameters["loss-history"] = static_cast<double>(random.count("history", 256, 4096));
    scenario.discard = static_cast<std::uint32_t>((settled + reuse - 1) / reuse * reuse);
    random.draw_epochs(scenario, 1 / (1 + beta));
    const std::uint64_t cycles = (scenario.epochs - scenario.discard + reuse - 1) / reuse;
    scenario.epochs = scenario.discard + static_cast<std::uint32_t>(cycles * reuse);
    return scenario;
}

// As law T2: selective epochs request 1/(1+beta) of the dataset; every reuseFactor-th epoch
// requests all.
LawRow importance_volume(RandomWorkload& random) {
    Scenario scenario = importance_job(random, 3, 150'000, 4);
    random.draw_share(scenario, 0, .9);
    const double selective = 1 / (1 + value_of(scenario.jobs[0], "beta"));
    const double reuse = value_of(scenario.jobs[0], "reuse-factor");
    const double requested = (1 + (reuse - 1) * selective) / reuse;
    return random.row(
        "requests of importance with its full epochs",
        about(requested).ceiling(1),
        means_of(run_law(scenario), 0, scenario.discard).requested);
}

// As law T3, without substitution and noise: the cache holds the share w of the dataset that is
// most important, so a selective epoch fetches (1-w)^(1+beta)/(1+beta) of the dataset, and a full
// one 1-w.
LawRow importance_misses(RandomWorkload& random) {
    // A sample that is seldom read displaces another one late: residents need twelve epochs to
    // settle.
    Scenario scenario = importance_job(random, 1.5, 100'000, 12);
    random.draw_share(scenario, .05, .35);
    scenario.jobs[0].parameters["substitute"] = 0;
    scenario.jobs[0].parameters["l-share"] = 0;
    scenario.jobs[0].parameters["loss-noise"] = 0;
    const double exponent = 1 + value_of(scenario.jobs[0], "beta");
    const double reuse = value_of(scenario.jobs[0], "reuse-factor");
    const double absent = 1 - scenario.cache.share;
    const double selective = std::pow(absent, exponent) / exponent;
    const double missing = (absent + (reuse - 1) * selective) / reuse;
    return random.row(
        "origin samples of importance by rank",
        about(missing).floor((1 - kSlack) * missing),
        means_of(run_law(scenario), 0, scenario.discard).origin_samples);
}

Scenario replicate_job(RandomWorkload& random) {
    // The means are of one epoch, so only a large one has a small standard error.
    Scenario scenario = random.one_job(40'000);
    scenario.batch = static_cast<std::uint32_t>(random.count("batch", 8, 256));
    // Whole batches only, so that equally many samples have each score.
    scenario.dataset.samples -= scenario.dataset.samples % scenario.batch;
    JobSpec& job = scenario.jobs[0];
    job.contract = "replicate";
    job.parameters["replication"] = 1;
    job.parameters["bias"] = random.number("bias", 2, 40);
    job.parameters["loss-sigma"] = random.number("loss-sigma", .5, 1.5);
    scenario.discard = 1;
    scenario.epochs = 2;
    return scenario;
}

// N draws with replacement in proportion to weights p reach N(1 - E[exp(-N p)]) samples. The first
// epoch after the plain shuffle has equally many samples with each score ln(k + bias), plus the
// floor, 0.01 of the mean loss.
LawRow replicate_coverage(RandomWorkload& random) {
    const Scenario scenario = replicate_job(random);
    const JobSpec& job = scenario.jobs[0];
    const double variance = std::pow(value_of(job, "loss-sigma"), 2);
    const double noise = std::pow(value_of(job, "loss-noise"), 2);
    const double floor = .01 * std::exp((variance + noise) / 2);
    std::vector<double> weights;
    double sum = 0;
    for (std::uint32_t beaten = 0; beaten < scenario.batch; ++beaten) {
        weights.push_back(std::log(beaten + value_of(job, "bias")) + floor);
        sum += weights.back();
    }
    double missed = 0;
    for (const double weight : weights) {
        missed += std::exp(-weight * scenario.batch / sum) / scenario.batch;
    }
    return random.row(
        "distinct samples of an epoch with replacement",
        about(1 - missed).ceiling(1),
        means_of(run_law(scenario), 0, scenario.discard).coverage);
}

// A link and a compute rate of which one is at least 1.5 times as slow as the other. The loader
// reads far enough ahead to fill the link in spite of its latency.
void draw_origin(RandomWorkload& random, Scenario& scenario) {
    const double slower = random.number("steps/link", .2, 3);
    scenario.origin.bytes_per_second = mib(random.count("MiB/s", 20, 2000));

    const double bytes =
        static_cast<double>(scenario.dataset.mean_bytes.count()) * (1 - scenario.cache.share);
    const double link = static_cast<double>(scenario.origin.bytes_per_second.count()) / bytes;
    scenario.ahead = 8;
    scenario.batch = static_cast<std::uint32_t>(random.count("batch", 8, 64));
    const double filled = scenario.batch * scenario.ahead / link / 8;
    scenario.origin.requests_max = 4096;
    scenario.origin.latency = std::chrono::microseconds{
        random.count("us", 1, static_cast<std::uint64_t>(1e6 * filled) + 1)};
    scenario.samples_per_second = link / (slower < 1 ? slower / 1.5 : slower * 1.5);
}

constexpr double kRounding = 1e-4;  // of times, which are whole nanoseconds
constexpr double kNanosecond = 1e-9;

// An epoch takes as long as its bytes on the link or its steps, whichever is longer, and never less
// than the bytes that it fetched. The link rounds the time of each answer down to a whole
// nanosecond. The floor allows one nanosecond for each answer: 5e-4 of the time of 4 KiB at 2000
// MiB/s. random_law(2023) (5 KiB, 1838 MiB/s) measures 2e-4 less than expected.
LawRow seconds(RandomWorkload& random) {
    Scenario scenario = random.one_job(20'000);
    random.draw_sizes(scenario);
    random.draw_share(scenario, 0, .8);
    draw_origin(random, scenario);
    const Outcome outcome = run_law(scenario);
    const JobMeans means = means_of(outcome, 0, scenario.discard);
    const auto bytes = static_cast<double>(outcome.dataset_bytes.count());
    const auto bandwidth = static_cast<double>(scenario.origin.bytes_per_second.count());
    const double link = means.origin_bytes * bytes / bandwidth;
    const double steps =
        static_cast<double>(scenario.dataset.samples) / scenario.samples_per_second;
    const double rounded =
        kNanosecond * means.origin_samples * static_cast<double>(scenario.dataset.samples);
    const double expected = std::max((1 - scenario.cache.share) * bytes / bandwidth, steps);
    return random.row(
        "seconds of an epoch",
        about(expected).floor((1 - kRounding) * std::max(link - rounded, steps)),
        means.seconds);
}

Scenario clairvoyant_job(RandomWorkload& random) {
    Scenario scenario = random.one_job(5000, 30'000);
    scenario.cache.policy = "nopfs";
    return scenario;
}

// Mean of the largest `share` of Binomial(epochs, 1/ranks), relative to the mean of all: the reads
// that a rank's own most frequent samples serve (law T6).
double favourites(std::uint32_t ranks, std::uint32_t epochs, double share) {
    const double p = 1.0 / ranks;
    double left = share;
    double reads = 0;
    for (std::uint32_t k = epochs; k > 0 && left > 0; --k) {
        const double n = epochs;
        const double log_chance = std::lgamma(n + 1) - std::lgamma(k + 1.0) -
                                  std::lgamma(n - k + 1) + k * std::log(p) +
                                  (n - k) * std::log1p(-p);
        const double part = std::min(left, std::exp(log_chance));
        reads += part * k;
        left -= part;
    }
    return reads / (epochs * p);
}

LawRow own_favourites(RandomWorkload& random) {
    Scenario scenario = clairvoyant_job(random);
    random.draw_share(scenario, .05, .5);
    scenario.epochs = static_cast<std::uint32_t>(random.count("E", 3, 60));
    ClairvoyantSpec spec;
    spec.world = static_cast<std::uint32_t>(random.count("n", 2, 16));
    const double expected = favourites(spec.world, scenario.epochs, scenario.cache.share);
    const auto figures = run_clairvoyant(scenario, spec);
    STOKER_CHECK(figures.has_value(), "a random workload is valid");
    return random.row(
        "reads served by a rank's own favourites",
        about(expected).ceiling(1),
        figures->favourite_share);
}

// NoPFS's time model without a cache: the ranks read the whole dataset through one link.
LawRow clairvoyant_seconds(RandomWorkload& random) {
    Scenario scenario = clairvoyant_job(random);
    scenario.samples_per_second = 1e7;
    scenario.epochs = 2;
    scenario.origin.bytes_per_second = mib(random.count("MiB/s", 10, 1000));
    ClairvoyantSpec spec;
    spec.world = static_cast<std::uint32_t>(random.count("n", 2, 16));
    spec.staging.threads = static_cast<double>(random.count("threads", 1, 16));
    spec.staging.read = spec.staging.write = {{1, 1e13}};
    spec.preprocess = 1e13;
    const auto figures = run_clairvoyant(scenario, spec);
    STOKER_CHECK(figures.has_value(), "a random workload is valid");
    const ClairvoyantEpoch& last = figures->epochs.back();
    const double link = static_cast<double>(last.origin_bytes.count()) /
                        static_cast<double>(scenario.origin.bytes_per_second.count());
    return random.row(
        "seconds of NoPFS's model without a cache",
        about(link).floor((1 - kSlack) * link),
        last.seconds);
}

}  // namespace

LawRow random_law(std::uint64_t seed) {
    using Check = LawRow (*)(RandomWorkload&);
    static constexpr Check kChecks[] = {
        never_evict,
        lock_step,
        unequal_speeds,
        importance_volume,
        replicate_coverage,
        lru,
        importance_misses,
        seconds,
        belady,
        own_favourites,
        clairvoyant_seconds,
        random_h_share,
        random_near_duplicates,
        random_bucket,
    };
    RandomWorkload random{seed};
    return kChecks[seed % std::size(kChecks)](random);
}

}  // namespace stoker::simulate
