#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/config/config_reader.h"

// What a job allows its trainers to make of the sample stream: a contract and the limits of its
// parameters, as the TrainingJob says them. Pure but for parsing, thread-safe.
namespace stoker::sidecar {

struct ContractTerms {
    std::string contract = "exact";
    std::map<std::string, double, std::less<>> parameters;  // what is left out is not limited

    bool operator==(const ContractTerms&) const = default;
};

// The keys "contract" and "sampling" (the parameters) of a dataset; nothing where there is neither.
// Mistakes go to `in`, all of them.
std::optional<ContractTerms> read_contract(config::ConfigReader& in);

// What the trainer gets when the job allows `allowed` and it asks for `asked`: its own parameters,
// and the job's where it says nothing. kInvalidArgument: it asks for more than it may; the message
// says what may be asked. An unknown contract or parameter is left to whoever draws.
Result<ContractTerms> narrow(const ContractTerms& allowed, const ContractTerms& asked);

}  // namespace stoker::sidecar
