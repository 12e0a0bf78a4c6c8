#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "cli/stoker/simulate_report.h"

namespace stoker::cli {

namespace {

using simulate::EpochFigures;
using simulate::JobMeans;

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string head(const simulate::Scenario& scenario, const simulate::Outcome& outcome) {
    return fmt::format(
        "{} samples, {}; cache {} resident + {} window; {} job(s), {} epochs\n",
        outcome.samples,
        to_string(outcome.dataset_bytes),
        to_string(outcome.resident_bytes),
        to_string(outcome.window_bytes),
        outcome.jobs.size(),
        scenario.epochs);
}

std::string epochs_table(const simulate::Outcome& outcome) {
    std::string text = fmt::format(
        "{:>3}  {:10} {:>5} {:>9} {:>6} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9}\n",
        "job",
        "contract",
        "epoch",
        "samples",
        "hits",
        "coverage",
        "subst.",
        "requests",
        "origin",
        "time",
        "waited");
    for (std::size_t job = 0; job < outcome.jobs.size(); ++job) {
        for (const EpochFigures& epoch : outcome.jobs[job].epochs) {
            text += fmt::format(
                "{:>3}  {:10} {:>5} {:>9} {:>5.1f}% {:>7.1f}% {:>5.1f}% {:>9} {:>9} {:>8.1f}s "
                "{:>8.1f}s{}\n",
                job,
                outcome.jobs[job].contract,
                epoch.epoch,
                epoch.requested,
                percent(epoch.hits, epoch.requested),
                percent(epoch.distinct, outcome.samples),
                percent(epoch.substituted, epoch.requested),
                epoch.origin_requests,
                to_string(epoch.origin_bytes),
                seconds(epoch.time),
                seconds(epoch.waited),
                epoch.complete ? "" : "  (not finished)");
        }
    }
    return text;
}

// Mean, minimum and maximum over the seeds.
struct Spread {
    double sum = 0;
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    double count = 0;

    void add(double value) {
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
        ++count;
    }

    [[nodiscard]] std::string text() const {
        return least == most ? fmt::format("{:.3f}", sum / count)
                             : fmt::format("{:.3f} ({:.3f} - {:.3f})", sum / count, least, most);
    }
};

std::string means_line(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs, std::size_t job) {
    Spread hits;
    Spread coverage;
    Spread bytes;
    Spread time;
    for (const SeededOutcome& run : runs) {
        const JobMeans means = simulate::means_of(run.outcome, job, scenario.discard);
        if (means.epochs == 0) {
            return fmt::format("job {}: no epoch that counts was finished\n", job);
        }
        hits.add(means.hit_ratio);
        coverage.add(means.coverage);
        bytes.add(means.origin_bytes);
        time.add(means.seconds);
    }
    return fmt::format(
        "job {}: hit ratio {}, coverage {}, origin bytes {} of the dataset, epoch {} s\n",
        job,
        hits.text(),
        coverage.text(),
        bytes.text(),
        time.text());
}

}  // namespace

std::string simulate_text(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs) {
    std::string text = head(scenario, runs.front().outcome);
    if (runs.size() > 1) {
        text += fmt::format("\nseed {}:", runs.front().seed);
    }
    text += fmt::format("\n{}", epochs_table(runs.front().outcome));
    text += fmt::format("\nmeans from epoch {} on", scenario.discard);
    text += runs.size() > 1 ? fmt::format(", {} seeds (least - most):\n", runs.size()) : ":\n";
    for (std::size_t job = 0; job < runs.front().outcome.jobs.size(); ++job) {
        text += means_line(scenario, runs, job);
    }
    Spread fetches;
    for (const SeededOutcome& run : runs) {
        fetches.add(simulate::fetches_per_job_epoch(run.outcome, scenario.discard));
    }
    return text + fmt::format("together: {} fetches for every sample read\n", fetches.text());
}

}  // namespace stoker::cli
