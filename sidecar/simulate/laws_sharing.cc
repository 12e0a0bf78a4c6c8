// T9 and T10: several jobs on one dataset.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "sidecar/simulate/law_checks.h"

namespace stoker::simulate {

namespace {

Scenario shared_scenario(std::size_t jobs) {
    Scenario scenario;
    scenario.dataset.samples = 10'000;
    scenario.cache.share = .2;
    scenario.batch = 50;
    scenario.ahead = 0;
    scenario.epochs = 4;
    scenario.jobs.assign(jobs, JobSpec{});
    return scenario;
}

// Smallest share of the dataset that a job got in an epoch; 0 if it got any sample more than once.
double worst_coverage(const Outcome& outcome) {
    double worst = 1;
    for (const JobFigures& job : outcome.jobs) {
        for (const EpochFigures& epoch : job.epochs) {
            const double share =
                static_cast<double>(epoch.distinct) / static_cast<double>(outcome.samples);
            worst = std::min(worst, epoch.complete ? share : 1);
            worst = epoch.repeated > 0 ? 0 : worst;
        }
    }
    return worst;
}

void add_rows(
    std::string_view jobs,
    const std::string& parameters,
    double fetches_max,
    const Outcome& outcome,
    const Scenario& scenario,
    std::vector<LawRow>& rows) {
    rows.push_back(
        {fmt::format("fetches per job and epoch, {}", jobs),
         parameters,
         at_most(fetches_max),
         fetches_per_job_epoch(outcome, scenario.discard)});
    rows.push_back(
        {"each sample exactly once an epoch", parameters, within(1, 0), worst_coverage(outcome)});
}

// T9 at equal speeds: one fetch serves all jobs, and the resident share s serves them every epoch.
void check_lock_step(std::vector<LawRow>& rows) {
    constexpr double kStatic = .9;
    for (std::size_t jobs = 1; jobs <= 4; ++jobs) {
        Scenario scenario = shared_scenario(jobs);
        scenario.cache.window_share = 1 - kStatic;
        for (JobSpec& job : scenario.jobs) {
            job.contract = "windowed";
        }
        const Outcome outcome = run_law(scenario);
        const std::string parameters = fmt::format("w=0.2 s=0.9 J={}", jobs);
        const double law = (1 - kStatic * scenario.cache.share) / static_cast<double>(jobs);
        add_rows("lock-step", parameters, 1.1 * law, outcome, scenario, rows);
    }
}

// T9 with jobs of different start times and speeds; eight epochs of the fastest.
void check_unequal_jobs(std::vector<LawRow>& rows) {
    constexpr double kStarts[] = {0, .37, .61, .83};  // in epochs of a job of speed 1
    constexpr double kSpeeds[] = {1, .5, .7, .9};
    constexpr double kPhases[] = {.438, .311, .257};
    constexpr double kUnequal[] = {.566, .400, .311};
    for (std::size_t jobs = 2; jobs <= 4; ++jobs) {
        for (const bool phases : {true, false}) {
            Scenario scenario = shared_scenario(jobs);
            scenario.cache.window_share = .25;
            scenario.epochs = 8;
            scenario.until_first_ends = true;
            const double epoch_seconds =
                static_cast<double>(scenario.dataset.samples) / scenario.samples_per_second;
            for (std::size_t i = 0; i < jobs; ++i) {
                JobSpec& job = scenario.jobs[i];
                job.contract = "windowed";
                job.speed = phases ? 1 : kSpeeds[i];
                job.start = std::chrono::milliseconds{
                    std::llround(phases ? 1000 * kStarts[i] * epoch_seconds : 0)};
            }
            const Outcome outcome = run_law(scenario);
            const std::string parameters = fmt::format("w=0.2 s=0.75 J={}", jobs);
            const double most = phases ? kPhases[jobs - 2] : kUnequal[jobs - 2];
            add_rows(phases ? "phases" : "speeds", parameters, most, outcome, scenario, rows);
        }
    }
}

}  // namespace

std::vector<LawRow> check_sharing() {
    std::vector<LawRow> rows;
    check_lock_step(rows);
    check_unequal_jobs(rows);
    return rows;
}

// T10: fetches of the strongest published competitor for several jobs on one dataset.
std::vector<LawRow> check_ods() {
    std::vector<LawRow> rows;
    constexpr double kFetches[] = {.68, .59, .54};
    for (std::size_t jobs = 2; jobs <= 4; ++jobs) {
        for (const bool ods : {false, true}) {
            Scenario scenario = shared_scenario(jobs);
            scenario.cache.policy = ods ? "ods" : "never-evict";
            rows.push_back(
                {fmt::format("fetches per job and epoch, {}", scenario.cache.policy),
                 fmt::format("w=0.2 J={}", jobs),
                 ods ? within(kFetches[jobs - 2], .015) : within(.80, .003),
                 fetches_per_job_epoch(run_law(scenario), scenario.discard)});
        }
    }
    return rows;
}

}  // namespace stoker::simulate
