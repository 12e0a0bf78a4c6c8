#include "sidecar/simulate/catalogue.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/domain/contract_table.h"

namespace stoker::simulate {

namespace {

const Entry* find(const std::vector<Entry>& entries, std::string_view name) {
    const auto found = std::ranges::find(entries, name, &Entry::name);
    return found == entries.end() ? nullptr : &*found;
}

// Joins names: "exact, windowed, importance"; "none" if empty.
template <class Named>
std::string join_names(const std::vector<Named>& list) {
    std::string names;
    for (const Named& one : list) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    }
    return names.empty() ? "none" : names;
}

double value(
    const Entry& entry, const std::map<std::string, double>& given, std::string_view name) {
    const Parameter* parameter = entry.parameter(name);
    STOKER_CHECK(parameter != nullptr, "only parameters of the catalogue are asked for");
    const auto found = given.find(std::string{name});
    return found == given.end() ? parameter->standard : found->second;
}

std::uint64_t sample_count(const DatasetSpec& dataset) {
    return dataset.sizes.empty() ? dataset.samples : dataset.sizes.size();
}

Status check_parameters(
    std::string_view kind, const Entry& entry, const std::map<std::string, double>& given) {
    for (const auto& [name, number] : given) {
        const Parameter* parameter = entry.parameter(name);
        if (parameter == nullptr) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "{} {} has no parameter '{}'; it has: {}",
                    kind,
                    entry.name,
                    name,
                    join_names(entry.parameters)));
        }
        const bool in_range = number >= parameter->least && number <= parameter->most;
        if (!in_range || (parameter->whole && number != std::floor(number))) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "{} must be {}{} to {}, not {}",
                    name,
                    parameter->whole ? "a whole number, " : "",
                    parameter->least,
                    parameter->most,
                    number));
        }
    }
    return {};
}

Status check_recorded(const Scenario& scenario, const JobSpec& job) {
    if (!job.recorded) {
        return {};
    }
    const std::string& policy = scenario.cache.policy;
    const bool keeps_order =
        policy.empty() || policy == "never-evict" || policy == "lru" || policy == "lfu";
    if (job.contract != "exact" || !keeps_order) {
        return fail(
            ErrorCode::kInvalidArgument,
            "recorded reads need contract exact and a policy that keeps their order: never-evict, "
            "lru or lfu");
    }
    const std::uint64_t samples = sample_count(scenario.dataset);
    const auto is_known = [samples](domain::SampleIndex sample) { return sample < samples; };
    const bool all_known = std::ranges::all_of(job.recorded->epochs, [&](const auto& epoch) {
        return std::ranges::all_of(epoch, is_known);
    });
    if (job.recorded->epochs.size() != scenario.epochs || !all_known) {
        return fail(
            ErrorCode::kInvalidArgument,
            "recorded reads need one list per epoch and samples of the dataset");
    }
    return {};
}

Status check_jobs(const Scenario& scenario) {
    if (scenario.jobs.empty() || scenario.jobs.size() > 48) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("1 to 48 jobs share a node, not {}", scenario.jobs.size()));
    }
    for (const JobSpec& job : scenario.jobs) {
        const Entry* contract = find_contract(job.contract);
        if (contract == nullptr) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "no contract '{}'; there are: {}", job.contract, join_names(contracts())));
        }
        STOKER_TRY_VOID(check_parameters("contract", *contract, job.parameters));
        if (!(job.speed > 0 && job.speed <= 1e6) || job.start < Duration::zero()) {
            return fail(ErrorCode::kInvalidArgument, "job speed must be > 0 and start >= 0");
        }
        STOKER_TRY_VOID(check_recorded(scenario, job));
    }
    return {};
}

// Checks that the policy suits the jobs.
Status check_fit(const Scenario& scenario) {
    const CacheSpec& cache = scenario.cache;
    const bool one_exact_job = scenario.jobs.size() == 1 && scenario.jobs[0].contract == "exact";
    if (cache.policy == "nopfs" && !one_exact_job) {
        return fail(
            ErrorCode::kInvalidArgument, "nopfs knows the future of one job with contract exact");
    }
    if (cache.policy == "belady" && !one_exact_job) {
        return fail(
            ErrorCode::kInvalidArgument,
            "belady knows the future of one job with contract exact only");
    }
    const bool all_exact = std::ranges::all_of(
        scenario.jobs, [](const JobSpec& job) { return job.contract == "exact"; });
    if ((cache.policy == "ods" || cache.policy == "quiver") && !all_exact) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "{} brings its own order for all jobs; leave contract=exact", cache.policy));
    }
    return {};
}

Status check_cache(const Scenario& scenario) {
    const CacheSpec& cache = scenario.cache;
    if (!(cache.share >= 0 && cache.share <= 1)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the cache's share of the dataset is 0 to 1, not {}", cache.share));
    }
    if (!(cache.window_share >= 0 && cache.window_share <= 1)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the window's share of the cache is 0 to 1, not {}", cache.window_share));
    }
    if (!cache.policy.empty()) {
        const Entry* policy = find_policy(cache.policy);
        if (policy == nullptr) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("no policy '{}'; there are: {}", cache.policy, join_names(policies())));
        }
        STOKER_TRY_VOID(check_parameters("policy", *policy, cache.parameters));
    }
    return check_fit(scenario);
}

Status check_numbers(const Scenario& scenario) {
    const DatasetSpec& dataset = scenario.dataset;
    const std::uint64_t samples = sample_count(dataset);
    if (samples == 0 || samples > 200'000'000) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("a dataset has 1 to 200,000,000 samples here, not {}", samples));
    }
    if (!(dataset.sigma >= 0 && dataset.sigma <= 3)) {
        return fail(ErrorCode::kInvalidArgument, "the sigma of the sizes must be 0 to 3");
    }
    const bool counts_fit = scenario.epochs > 0 && scenario.batch > 0 && scenario.batch <= 65536 &&
                            scenario.ahead <= 65536;
    if (!counts_fit || scenario.discard >= scenario.epochs) {
        return fail(
            ErrorCode::kInvalidArgument,
            "at least one epoch must count (epochs > discard), a batch holds 1 to 65536 samples");
    }
    const OriginSpec& origin = scenario.origin;
    if (origin.requests_max == 0 || origin.requests_max > 65536 ||
        origin.bytes_per_second == Bytes{} || origin.latency < Duration::zero()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the origin needs a bandwidth, 1 to 65536 requests in flight, a latency not below 0");
    }
    if (!(scenario.samples_per_second > 0) ||
        !(scenario.loss_correlation >= 0 && scenario.loss_correlation <= 1)) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the compute rate is above 0, the correlation of losses 0 to 1");
    }
    return {};
}

// "h-share" becomes "hShare".
std::string wire_name(std::string_view flag) {
    std::string name;
    for (const char letter : flag) {
        if (!name.empty() && name.back() == '-') {
            name.back() = static_cast<char>(letter - 'a' + 'A');
        } else {
            name += letter;
        }
    }
    return name;
}

struct Meaning {
    std::string_view flag;
    std::string_view meaning;
};

// A contract's parameters, with the bounds and defaults of its table.
std::vector<Parameter> of_the_table(
    std::string_view contract, const std::vector<Meaning>& parameters) {
    std::vector<Parameter> result;
    for (const auto& [flag, meaning] : parameters) {
        const domain::ContractParameter* row = domain::find_parameter(contract, wire_name(flag));
        STOKER_CHECK(row != nullptr, "every parameter of a contract is in the table");
        result.push_back({flag, row->standard, row->least, row->most, row->step == 1, meaning});
    }
    return result;
}

// Parameters of the simulated trainer; the sidecar does not receive them.
const std::vector<Parameter>& trainer_parameters() {
    static const std::vector<Parameter> kParameters = {
        {"weight", 1, 0, 1e6, false, "of the job in the aggregated importance, times its speed"},
        {"loss-scale", 1, 1e-30, 1e30, false, "multiplies the job's losses"},
        {"loss-decay", 0, 0, 0.99, false, "of the losses, from epoch to epoch: what is learnt"},
        {"loss-sigma", 1, 0, 10, false, "of the logarithm of the samples' lasting importance"},
        {"loss-noise", 0.3, 0, 10, false, "of the logarithm of one visit's loss"}};
    return kParameters;
}

std::vector<Parameter> with_losses(std::vector<Parameter> parameters) {
    const auto& more = trainer_parameters();
    parameters.insert(parameters.end(), more.begin(), more.end());
    return parameters;
}

}  // namespace

const Parameter* Entry::parameter(std::string_view wanted) const {
    const auto found = std::ranges::find(parameters, wanted, &Parameter::name);
    return found == parameters.end() ? nullptr : &*found;
}

const std::vector<Entry>& contracts() {
    static const std::vector<Entry> kContracts = {
        {"exact", "the trainer's own order: every sample once an epoch", {}},
        {"windowed",
         "every sample once an epoch, in an order that shares fetches among jobs",
         of_the_table(
             "windowed",
             {{"drift", "how far a job may leave the even mix, of its epoch"},
              {"chunk-group", "4 MiB chunks that are shuffled together (DIESEL)"}})},
        {"importance",
         "fewer samples by their losses, unimportant ones substituted (iCACHE)",
         with_losses(of_the_table(
             "importance",
             {{"beta", "a sample is kept with probability percentile^beta"},
              {"warmup-epochs", "full epochs at the start; family 1: 1"},
              {"reuse-factor", "every so many epochs one is full; 1: all are"},
              {"loss-history", "losses that a percentile is taken among"},
              {"h-share", "of the kept samples: important, never substituted"},
              {"l-share", "of the residents: unimportant ones, to substitute"},
              {"substitute", "0: unimportant samples are read themselves"},
              {"family", "1: buckets of samples that wait outside (IOWA) instead"},
              {"out-rate", "family 1: of the bucket, that waits more each epoch"},
              {"min-fraction", "family 1: of the dataset, that never waits"},
              {"recall-after", "family 1: epochs without progress until a recall"},
              {"recall-fraction", "family 1: of those that wait, that return"}}))},
        {"replicate",
         "draws with replacement by rank scores, residents several times (SHADE)",
         with_losses(of_the_table(
             "replicate",
             {{"replication", "how often a resident is read, in halves"},
              {"bias", "b0 of the score ln(rank + b0)"},
              {"warmup-epochs", "plainly shuffled epochs at the start"},
              {"unseen-score", "until a sample's first loss; 0: ln(b0)"}}))},
    };
    return kContracts;
}

const std::vector<Entry>& policies() {
    static const std::vector<Entry> kPolicies = {
        {"never-evict", "what came first stays (CoorDL)", {}},
        {"lru", "the one read longest ago goes", {}},
        {"lfu", "the one read least often so far goes", {}},
        {"belady", "the one needed last goes; knows the future of one exact job", {}},
        {"ods",
         "Seneca: each resident is read once by every job, then refilled",
         {{"probes", 12, 0, 1000, true, "looks for an unread resident before a fetch"}}},
        {"quiver",
         "Quiver: residents first among several batches' worth of requests",
         {{"over-request", 10, 1, 1000, true, "batches that are looked through"}}},
        {"nopfs",
         "NoPFS: the ranks of one exact job know their epochs, each keeps what it reads most",
         {}},
    };
    return kPolicies;
}

const Entry* find_contract(std::string_view name) {
    return find(contracts(), name);
}

const Entry* find_policy(std::string_view name) {
    return find(policies(), name);
}

double value_of(const JobSpec& job, std::string_view name) {
    const Entry* contract = find_contract(job.contract);
    STOKER_CHECK(contract != nullptr, "only a checked scenario is simulated");
    return value(*contract, job.parameters, name);
}

std::vector<local::Parameter> parameters_of(const JobSpec& job) {
    std::vector<local::Parameter> parameters;
    for (const auto& [name, number] : job.parameters) {
        if (std::ranges::find(trainer_parameters(), name, &Parameter::name) ==
            trainer_parameters().end()) {
            parameters.push_back({wire_name(name), number});
        }
    }
    return parameters;
}

double policy_value(const Scenario& scenario, std::string_view name) {
    const Entry* policy = find_policy(scenario.cache.policy);
    STOKER_CHECK(policy != nullptr, "only a checked scenario is simulated");
    return value(*policy, scenario.cache.parameters, name);
}

Status check_scenario(const Scenario& scenario) {
    STOKER_TRY_VOID(check_numbers(scenario));
    STOKER_TRY_VOID(check_jobs(scenario));
    return check_cache(scenario);
}

}  // namespace stoker::simulate
