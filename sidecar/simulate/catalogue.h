#pragma once

#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "proto/local/sampling_frames.h"
#include "sidecar/simulate/scenario.h"

// The contracts and policies that can be simulated and their parameters: printed by help and in the
// error for an unknown name.
namespace stoker::simulate {

struct Parameter {
    std::string_view name;
    double standard = 0;
    double least = 0;
    double most = 0;
    bool whole = false;
    std::string_view meaning;
};

struct Entry {
    std::string_view name;
    std::string_view meaning;
    std::vector<Parameter> parameters;

    [[nodiscard]] const Parameter* parameter(std::string_view wanted) const;
};

const std::vector<Entry>& contracts();
const std::vector<Entry>& policies();

const Entry* find_contract(std::string_view name);
const Entry* find_policy(std::string_view name);

// The job's value of the parameter, or the default. `name` must be one of its contract's
// parameters.
double value_of(const JobSpec& job, std::string_view name);

// The parameters that the job's trainer sends to the sidecar, named as in
// docs/reference/sampling-contracts.md.
std::vector<local::Parameter> parameters_of(const JobSpec& job);

// The policy's value of the named parameter, or the default.
double policy_value(const Scenario& scenario, std::string_view name);

// kInvalidArgument: the scenario cannot be simulated; the message says why and lists the
// alternatives.
Status check_scenario(const Scenario& scenario);

}  // namespace stoker::simulate
