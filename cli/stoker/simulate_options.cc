#include "cli/stoker/simulate_options.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "cli/stoker/clairvoyant_options.h"
#include "common/base/split.h"
#include "common/config/config_reader.h"
#include "common/flags/flags.h"
#include "sidecar/simulate/catalogue.h"

namespace stoker::cli {

namespace {

using simulate::JobSpec;
using simulate::Scenario;

// The flags before they are combined, because --PARAMETER may come before --job.
struct Draft {
    SimulateOptions options;
    std::vector<JobSpec> jobs;
    std::uint64_t copies = 1;
    std::map<std::string, double> parameters;  // of contracts and policies, for all jobs
    std::optional<double> window_share;
    std::string clairvoyant_flag;  // a flag that only nopfs has; empty: none was set
};

auto set(bool& out) {
    return [&out](std::string_view text) -> Status {
        if (!text.empty()) {
            return fail(ErrorCode::kInvalidArgument, "takes no value");
        }
        out = true;
        return {};
    };
}

Status set_job_part(JobSpec& job, std::string_view name, std::string_view value) {
    if (name == "contract") {
        job.contract = value;
    } else if (name == "speed") {
        STOKER_TRY(job.speed, parse_number(name, value));
    } else if (name == "start") {
        STOKER_TRY(job.start, config::parse_duration(value));
    } else {
        STOKER_TRY(job.parameters[std::string{name}], parse_number(name, value));
    }
    return {};
}

// Parses "contract=importance,speed=1,start=30s,beta=0.33".
Result<JobSpec> parse_job(std::string_view text) {
    JobSpec job;
    const auto set = [&job](std::string_view name, std::string_view value) {
        return set_job_part(job, name, value);
    };
    STOKER_TRY_VOID(each_pair(text, "contract=exact,speed=0.5", set));
    return job;
}

// Parses the seeds of one flag; a repeated flag replaces the earlier one.
Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text) {
    std::vector<std::uint64_t> seeds;
    for (const std::string_view part : split(text, ',')) {
        STOKER_TRY(seeds.emplace_back(), parse_count("seed", part));
    }
    return seeds;
}

FlagGroup dataset_flags(Draft& draft) {
    auto& dataset = draft.options.scenario.dataset;
    return {
        "Dataset",
        {{"samples", "N", "samples (20000)", count_into(dataset.samples)},
         {"sample-bytes",
          "BYTES",
          "mean size of a sample (110Ki)",
          read_into(dataset.mean_bytes, config::parse_bytes)},
         {"sample-sigma",
          "S",
          "standard deviation of the log of the log-normal sizes; 0: equal sizes (0)",
          number_into(dataset.sigma)},
         {"manifest",
          "FILE",
          "take the sizes from a node directory's manifest.<revision> instead",
          text_into(draft.options.manifest_path)}}};
}

FlagGroup cache_flags(Draft& draft) {
    auto& cache = draft.options.scenario.cache;
    return {
        "Cache",
        {{"cache-share",
          "W",
          "cache size as a share of the dataset's bytes (0.2)",
          number_into(cache.share)},
         {"cache-bytes",
          "BYTES",
          "cache size in bytes",
          read_into(cache.bytes, config::parse_bytes)},
         {"window-share",
          "S",
          "share of the cache for samples in transit (0.1; one exact job: 0)",
          number_into(draft.window_share)},
         {"policy",
          "NAME",
          "which samples stay, see below (default: the sidecar's for the jobs' contracts)",
          text_into(cache.policy)}}};
}

FlagGroup job_flags(Draft& draft) {
    Scenario& scenario = draft.options.scenario;
    return {
        "Jobs",
        {{"job",
          "K=V,...",
          "contract=, speed= (1), start= (0s) and parameters; repeat for more jobs",
          read_into(draft.jobs, parse_job)},
         {"jobs", "J", "copies of the jobs named by --job (1)", count_into(draft.copies)},
         {"epochs", "E", "epochs of each job (3)", count_into(scenario.epochs)},
         {"discard",
          "E",
          "number of first epochs that the means exclude (1)",
          count_into(scenario.discard)},
         {"batch", "B", "samples in a batch (64)", count_into(scenario.batch)},
         {"ahead",
          "B",
          "batches that a loader requests in advance (2)",
          count_into(scenario.ahead)},
         {"read-ahead",
          "B",
          "of the --ahead batches, those that workers have read already (all)",
          count_into(scenario.read_ahead)},
         {"compute-rate",
          "N",
          "samples a second that a job of speed 1 computes (2000)",
          number_into(scenario.samples_per_second)},
         {"loss-correlation",
          "C",
          "correlation of the samples' importance between jobs, 0 to 1 (0)",
          number_into(scenario.loss_correlation)},
         {"until-first-ends",
          "",
          "stop when the fastest job has finished",
          set(scenario.until_first_ends)}}};
}

FlagGroup other_flags(Draft& draft) {
    Scenario& scenario = draft.options.scenario;
    return {
        "Origin and run",
        {{"origin-latency",
          "TIME",
          "latency of a request (5ms)",
          read_into(scenario.origin.latency, config::parse_duration)},
         {"origin-bandwidth",
          "BYTES",
          "bytes per second for all jobs together (200Mi)",
          read_into(scenario.origin.bytes_per_second, config::parse_bytes)},
         {"origin-requests",
          "N",
          "maximum of concurrent requests (32)",
          count_into(scenario.origin.requests_max)},
         {"seeds",
          "N,...",
          "random seeds, one run for each (1)",
          read_into(draft.options.seeds, parse_seeds)},
         {"json", "", "print JSON", set(draft.options.json)},
         {"help", "", "print this", set(draft.options.help)}}};
}

// One flag for each parameter of a contract or policy; it applies to all jobs that have that
// parameter.
FlagGroup parameter_flags(Draft& draft) {
    FlagGroup group{"Parameters of contracts and policies, for all jobs that have them", {}};
    for (const auto* entries : {&simulate::contracts(), &simulate::policies()}) {
        for (const simulate::Entry& entry : *entries) {
            for (const simulate::Parameter& parameter : entry.parameters) {
                const std::string name{parameter.name};
                if (std::ranges::find(group.flags, name, &Flag::name) != group.flags.end()) {
                    continue;
                }
                group.flags.push_back(
                    {name,
                     "N",
                     fmt::format("{}: {} ({})", entry.name, parameter.meaning, parameter.standard),
                     [&draft, name](std::string_view text) {
                         return number_into(draft.parameters[name])(text);
                     }});
            }
        }
    }
    return group;
}

std::vector<FlagGroup> all_flags(Draft& draft) {
    return {
        dataset_flags(draft),
        cache_flags(draft),
        job_flags(draft),
        other_flags(draft),
        clairvoyant_flags(draft.options.clairvoyant, draft.clairvoyant_flag),
        parameter_flags(draft)};
}

// Sets the parameter in every job and policy that has it; an error if none has it.
Status spread(const std::string& name, double value, Scenario& scenario) {
    bool used = false;
    for (JobSpec& job : scenario.jobs) {
        const simulate::Entry* contract = simulate::find_contract(job.contract);
        if (contract != nullptr && contract->parameter(name) != nullptr) {
            job.parameters.try_emplace(name, value);
            used = true;
        }
    }
    const simulate::Entry* policy = simulate::find_policy(scenario.cache.policy);
    if (policy != nullptr && policy->parameter(name) != nullptr) {
        scenario.cache.parameters[name] = value;
        used = true;
    }
    if (!used) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("--{}: no job's contract and no policy here has it", name));
    }
    return {};
}

Result<SimulateOptions> put_together(Draft draft) {
    Scenario& scenario = draft.options.scenario;
    if (draft.jobs.empty()) {
        draft.jobs.emplace_back();
    }
    if (draft.copies == 0 || draft.copies > 48) {
        return fail(ErrorCode::kInvalidArgument, "--jobs: 1 to 48 jobs share a node");
    }
    scenario.jobs.clear();
    for (std::uint64_t copy = 0; copy < draft.copies; ++copy) {
        scenario.jobs.insert(scenario.jobs.end(), draft.jobs.begin(), draft.jobs.end());
    }
    for (const auto& [name, value] : draft.parameters) {
        STOKER_TRY_VOID(spread(name, value, scenario));
    }
    const bool one_exact_job = scenario.jobs.size() == 1 && scenario.jobs[0].contract == "exact";
    scenario.cache.window_share = draft.window_share.value_or(one_exact_job ? 0 : 0.1);
    STOKER_TRY_VOID(simulate::check_scenario(scenario));
    if (is_clairvoyant(draft.options)) {
        STOKER_TRY_VOID(simulate::check_clairvoyant(scenario, draft.options.clairvoyant));
    } else if (!draft.clairvoyant_flag.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("--{}: only --policy nopfs has it", draft.clairvoyant_flag));
    }
    return std::move(draft.options);
}

std::string entry_help(std::string_view title, const std::vector<simulate::Entry>& entries) {
    std::string text = fmt::format("\n{}\n", title);
    for (const simulate::Entry& entry : entries) {
        text += fmt::format("  {:14}{}\n", entry.name, entry.meaning);
    }
    return text;
}

}  // namespace

Result<SimulateOptions> parse_simulate(const std::vector<std::string_view>& arguments) {
    Draft draft;
    STOKER_TRY_VOID(parse_flags(all_flags(draft), arguments));
    if (draft.options.help) {
        return std::move(draft.options);
    }
    return put_together(std::move(draft));
}

bool is_clairvoyant(const SimulateOptions& options) {
    return options.scenario.cache.policy == "nopfs";
}

std::string simulate_help() {
    Draft draft;
    return "usage: stoker simulate [FLAG]...\n"
           "Says what a cache on one node would be worth: runs jobs, cache and origin in "
           "simulated\n"
           "time, with the samplers and eviction policies of the sidecar.\n\n"
           "  stoker simulate --samples 1281167 --cache-share 0.2 --epochs 10\n"
           "  stoker simulate --policy ods --jobs 3\n"
           "  stoker simulate --policy nopfs --world 8 --cache-share 0.125 --epochs 30\n"
           "  stoker simulate --job speed=1 --job speed=0.5,start=30s --origin-latency 20ms\n" +
           entry_help("Contracts (--job contract=NAME)", simulate::contracts()) +
           entry_help("Policies (--policy NAME)", simulate::policies()) +
           flag_help(all_flags(draft));
}

}  // namespace stoker::cli
