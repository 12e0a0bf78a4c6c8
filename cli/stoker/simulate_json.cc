#include <cpprest/json.h>

#include "cli/stoker/simulate_report.h"

namespace stoker::cli {

namespace {

using web::json::value;

value number(std::uint64_t count) {
    return value::number(count);
}

value seconds(Duration duration) {
    return value::number(std::chrono::duration<double>(duration).count());
}

value epoch_json(const simulate::EpochFigures& epoch) {
    value json = value::object(true);
    json["epoch"] = number(epoch.epoch);
    json["complete"] = value::boolean(epoch.complete);
    json["requested"] = number(epoch.requested);
    json["hits"] = number(epoch.hits);
    json["distinct"] = number(epoch.distinct);
    json["repeated"] = number(epoch.repeated);
    json["substituted"] = number(epoch.substituted);
    json["originRequests"] = number(epoch.origin_requests);
    json["originSamples"] = number(epoch.origin_samples);
    json["refillSamples"] = number(epoch.refill_samples);
    json["originBytes"] = number(epoch.origin_bytes.count());
    json["seconds"] = seconds(epoch.time);
    json["waitedSeconds"] = seconds(epoch.waited);
    return json;
}

value means_json(const simulate::JobMeans& means) {
    value json = value::object(true);
    json["epochs"] = number(means.epochs);
    json["requested"] = value::number(means.requested);
    json["hitRatio"] = value::number(means.hit_ratio);
    json["coverage"] = value::number(means.coverage);
    json["substituted"] = value::number(means.substituted);
    json["originRequests"] = value::number(means.origin_requests);
    json["originSamples"] = value::number(means.origin_samples);
    json["originBytes"] = value::number(means.origin_bytes);
    json["seconds"] = value::number(means.seconds);
    json["waitedSeconds"] = value::number(means.waited_seconds);
    return json;
}

value job_json(const simulate::Outcome& outcome, std::size_t job, std::uint32_t discard) {
    value epochs = value::array();
    for (const auto& epoch : outcome.jobs[job].epochs) {
        epochs[epochs.size()] = epoch_json(epoch);
    }
    value json = value::object(true);
    json["contract"] = value::string(outcome.jobs[job].contract);
    json["epochs"] = epochs;
    json["means"] = means_json(simulate::means_of(outcome, job, discard));
    return json;
}

value run_json(const simulate::Scenario& scenario, const SeededOutcome& run) {
    const std::uint32_t discard = scenario.discard;
    value jobs = value::array();
    for (std::size_t job = 0; job < run.outcome.jobs.size(); ++job) {
        jobs[job] = job_json(run.outcome, job, discard);
    }
    value json = value::object(true);
    json["seed"] = number(run.seed);
    json["jobs"] = jobs;
    json["fetchesPerJobEpoch"] =
        value::number(simulate::fetches_per_job_epoch(run.outcome, discard));
    if (run.outcome.steady) {
        json["speedReached"] = value::number(run.outcome.steady->speed_reached(scenario));
    }
    return json;
}

}  // namespace

std::string simulate_json(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs) {
    const simulate::Outcome& first = runs.front().outcome;
    value list = value::array();
    for (const SeededOutcome& run : runs) {
        list[list.size()] = run_json(scenario, run);
    }
    value json = value::object(true);
    json["samples"] = number(first.samples);
    json["datasetBytes"] = number(first.dataset_bytes.count());
    json["residentBytes"] = number(first.resident_bytes.count());
    json["windowBytes"] = number(first.window_bytes.count());
    json["discard"] = number(scenario.discard);
    json["runs"] = list;
    return json.serialize() + "\n";
}

}  // namespace stoker::cli
