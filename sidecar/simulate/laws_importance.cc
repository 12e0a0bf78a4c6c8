// Laws T2 to T4 and T13 (docs/reference/simulate.md): the contract importance.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/core.h>

#include "common/base/prng.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/keyed_heaps.h"
#include "sidecar/simulate/catalogue.h"
#include "sidecar/simulate/law_checks.h"

namespace stoker::simulate {

namespace {

constexpr double kBetas[] = {.33, 1};
constexpr double kWindow = .0256;  // of the dataset, in addition to the resident bytes

// A workload of iCACHE: the first epochs read everything, then every third one does. `w`: the share
// of the dataset that may be resident.
Scenario importance_scenario(double w, double beta, std::size_t jobs = 1) {
    Scenario scenario;
    scenario.cache.share = w + kWindow;
    scenario.cache.window_share = kWindow / scenario.cache.share;
    scenario.batch = 256;
    scenario.ahead = 0;
    scenario.epochs = 24;
    scenario.discard = 8;
    scenario.seed = 3;
    JobSpec job;
    job.contract = "importance";
    job.parameters["beta"] = beta;
    scenario.jobs.assign(jobs, job);
    return scenario;
}

// Removes the window: the cache holds residents only.
void without_window(Scenario& scenario) {
    scenario.cache.share -= kWindow;
    scenario.cache.window_share = 0;
}

bool is_selective(const Scenario& scenario, const EpochFigures& epoch) {
    const auto reuse = static_cast<std::uint64_t>(value_of(scenario.jobs[0], "reuse-factor"));
    return epoch.epoch >= scenario.discard && epoch.epoch % reuse != 0;
}

// Mean of a figure over the selective epochs of one job.
template <class Figure>
double selective_mean(const Scenario& scenario, const JobFigures& job, const Figure& figure) {
    double sum = 0;
    double count = 0;
    for (const EpochFigures& epoch : job.epochs) {
        if (is_selective(scenario, epoch)) {
            sum += figure(epoch);
            ++count;
        }
    }
    return sum / count;
}

double hit_ratio(const Scenario& scenario, const JobFigures& job) {
    return selective_mean(scenario, job, [](const EpochFigures& epoch) {
        return static_cast<double>(epoch.hits) / static_cast<double>(epoch.requested);
    });
}

// Requests to the origin per epoch, as a share of the dataset's samples: the product sends one for
// each sample that it fetches, neighbours included.
double requests(const Scenario& scenario) {
    return means_of(run_law(scenario), 0, scenario.discard).origin_samples;
}

double exact_requests(Scenario scenario, const char* policy) {
    scenario.jobs.assign(1, JobSpec{});
    without_window(scenario);
    scenario.cache.policy = policy;
    return requests(scenario);
}

// Requests under importance if the node has the most important share w of the samples: one epoch in
// three is full and fetches 1-w; the others read a sample with probability percentile^beta.
double closed_form(double w, double beta) {
    const double selective = std::pow(1 - w, 1 + beta) / (1 + beta);
    return ((1 - w) + 2 * selective) / 3;
}

// Tolerance of the closed form, which ignores noise: with noisy losses the most important samples
// change from epoch to epoch, and some residents are no longer among them.
constexpr double kNoise = .06;

// Runs two jobs on a cache whose values combine their importance by weight. Nothing is substituted,
// so every hit is of the requested sample.
Outcome run_pair(Scenario& scenario, double first_weight, double second_weight) {
    for (JobSpec& job : scenario.jobs) {
        job.parameters["substitute"] = 0;
    }
    scenario.jobs[0].parameters["weight"] = first_weight;
    scenario.jobs[1].parameters["weight"] = second_weight;
    return run_law(scenario);
}

double mean_hits(const Scenario& scenario, const Outcome& outcome) {
    return (hit_ratio(scenario, outcome.jobs[0]) + hit_ratio(scenario, outcome.jobs[1])) / 2;
}

// Number of figures that differ between two outcomes.
double differences(const Outcome& a, const Outcome& b) {
    double count = 0;
    for (std::size_t job = 0; job < a.jobs.size(); ++job) {
        for (std::size_t i = 0; i < a.jobs[job].epochs.size(); ++i) {
            const EpochFigures& x = a.jobs[job].epochs[i];
            const EpochFigures& y = b.jobs[job].epochs[i];
            count += x.requested != y.requested ? 1 : 0;
            count += x.hits != y.hits ? 1 : 0;
            count += x.distinct != y.distinct ? 1 : 0;
            count += x.time != y.time ? 1 : 0;
        }
    }
    return count;
}

// The ranks of more than 65,536 samples are rebuilt in slices of an epoch.
LawRow check_large_dataset() {
    Scenario scenario = importance_scenario(.2, 1);
    scenario.epochs = 14;
    scenario.jobs[0].parameters["substitute"] = 0;
    const double small = hit_ratio(scenario, run_law(scenario).jobs[0]);
    scenario.dataset.samples = 150'000;
    return {
        "hits with ranks rebuilt in slices / at once",
        "150,000 and 20,000 samples",
        at_least(.98),
        hit_ratio(scenario, run_law(scenario).jobs[0]) / small};
}

Bytes record_of(Bytes sample_bytes) {
    return Bytes{domain::record_bytes(sample_bytes.count())};
}

// Memory that a refresh() of ImportanceEviction adds, which moves all residents from the main heap
// to the shadow heap. Moves them in its order: the last entry of the main heap first.
Bytes shadow_memory(std::uint32_t residents, Bytes sample_bytes) {
    constexpr std::uint32_t kMain = 0;
    constexpr std::uint32_t kShadow = 1;
    const Bytes record = record_of(sample_bytes);
    sidecar::ImportanceHeaps heaps{residents};
    Prng prng{7};
    const auto draw_key = [&prng] { return static_cast<std::uint32_t>(prng.below(1U << 30U)); };
    for (std::uint32_t sample = 0; sample < residents; ++sample) {
        heaps.insert(kMain, {draw_key(), sample, sidecar::saturated(record)});
    }
    const auto memory = [&heaps] {
        return heaps.entries(kMain).memory_bytes() + heaps.entries(kShadow).memory_bytes();
    };
    const std::size_t before = memory();
    std::size_t most = before;
    while (!heaps.entries(kMain).empty()) {
        sidecar::ImportanceHeaps::Entry entry = heaps.take_last(kMain);
        entry.key = draw_key();
        heaps.insert(kShadow, entry);
        most = std::max(most, memory());
    }
    return Bytes{most - before};
}

// Bound of shadow_memory(), in KiB: two pieces of 1,024 entries, and the shadow heap's table of pieces,
// which a vector may have made twice as long as needed.
double shadow_kib_max(std::uint32_t residents) {
    constexpr double kPiece = 1024;
    const double pieces = std::ceil(residents / kPiece);
    return (2 * kPiece * sizeof(sidecar::ImportanceHeaps::Entry) + 2 * pieces * sizeof(void*)) /
           1024;
}

}  // namespace

std::vector<LawRow> check_shadow_heap() {
    std::vector<LawRow> rows;
    constexpr Bytes kMnist{784};
    constexpr Bytes kCifar10{3073};
    for (const Bytes sample : {kMnist, kCifar10, kib(110)}) {  // the last: ImageNet's
        for (const std::uint32_t residents : {20'000U, 400'000U}) {
            const auto added = static_cast<double>(shadow_memory(residents, sample).count());
            const auto cache = static_cast<double>((record_of(sample) * residents).count());
            const std::string parameters =
                fmt::format("{} samples of {} bytes", residents, sample.count());
            rows.push_back(
                {"memory of the shadow heap in KiB",
                 parameters,
                 at_most(shadow_kib_max(residents)).floor(0),
                 added / 1024});
            if (sample == kMnist) {  // a second heap of larger samples takes less than this share
                rows.push_back(
                    {"memory of the shadow heap / of the cache",
                     parameters,
                     at_most(.005).floor(0),
                     added / cache});
            }
        }
    }
    return rows;
}

std::vector<LawRow> check_selection() {
    std::vector<LawRow> rows;
    for (const double beta : kBetas) {
        const Scenario scenario = importance_scenario(.2, beta);
        const Outcome outcome = run_law(scenario);
        const double requested =
            selective_mean(scenario, outcome.jobs[0], [&outcome](const EpochFigures& epoch) {
                return static_cast<double>(epoch.requested) / static_cast<double>(outcome.samples);
            });
        rows.push_back(
            {"requested in a selective epoch",
             fmt::format("beta={}", beta),
             within(1 / (1 + beta), .01),
             requested});
    }
    return rows;
}

std::vector<LawRow> check_importance_cost() {
    std::vector<LawRow> rows;
    for (const double w : {.1, .2, .4, .6}) {
        const double lru = exact_requests(importance_scenario(w, 0), "lru");
        const double never = exact_requests(importance_scenario(w, 0), "never-evict");
        for (const double beta : kBetas) {
            Scenario scenario = importance_scenario(w, beta);
            const double expected = closed_form(w, beta);
            const double of_lru = 1 - w - (1 - w) * std::log(1 - w);
            const double importance = requests(scenario);
            const std::string parameters = fmt::format("w={} beta={}", w, beta);
            rows.push_back(
                {"requests of LRU / of importance",
                 parameters,
                 at_least((1 - kNoise) * of_lru / expected),
                 lru / importance});
            rows.push_back(
                {"requests of never-evict / of importance",
                 parameters,
                 at_least((1 - kNoise) * (1 - w) / expected),
                 never / importance});
            scenario.jobs[0].parameters["substitute"] = 0;
            rows.push_back(
                {"requests without substitutes",
                 parameters,
                 within(expected, kNoise * expected),
                 requests(scenario)});
        }
    }
    rows.push_back(check_large_dataset());
    return rows;
}

std::vector<LawRow> check_aggregated_importance() {
    std::vector<LawRow> rows;
    for (const double correlation : {0.0, .5, .9}) {
        Scenario scenario = importance_scenario(.2, 1, 2);
        without_window(scenario);
        scenario.loss_correlation = correlation;
        scenario.jobs[0].parameters["loss-scale"] = 10;
        const Outcome both = run_pair(scenario, 1, 1);
        const double first_alone = mean_hits(scenario, run_pair(scenario, 1, 0));
        const std::string parameters = fmt::format("w=0.2 correlation={}", correlation);
        rows.push_back(
            {"mean hits, ranks of both / of the first alone",
             parameters,
             at_least(correlation == 0 ? 1.10 : 1.0),
             mean_hits(scenario, both) / first_alone});
        scenario.jobs[0].parameters["loss-scale"] = 1;
        rows.push_back(
            {"figures that change with one job's loss scale",
             parameters,
             within(0, 0),
             differences(both, run_pair(scenario, 1, 1))});
    }
    return rows;
}

}  // namespace stoker::simulate
