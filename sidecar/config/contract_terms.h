#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/config/config_reader.h"

// A job's limits on the sampling of its trainers: a contract and bounds of its parameters, from the
// TrainingJob. Pure but for parsing, thread-safe.
namespace stoker::sidecar {

struct ContractTerms {
    std::string contract = "exact";
    std::map<std::string, double, std::less<>> parameters;  // absent parameters have no limit

    bool operator==(const ContractTerms&) const = default;
};

// Reads the keys "contract" and "sampling" (the parameters) of a dataset; nullopt if both are
// absent. Reports all mistakes to `in`.
std::optional<ContractTerms> read_contract(config::ConfigReader& in);

// Combines the job's terms `allowed` with a trainer's request `asked`: the trainer's parameters,
// and the job's for those it omits. kInvalidArgument: it requests more than the job allows; the
// message states the limit. The sampler rejects unknown contracts and parameters.
Result<ContractTerms> narrow(const ContractTerms& allowed, const ContractTerms& asked);

}  // namespace stoker::sidecar
