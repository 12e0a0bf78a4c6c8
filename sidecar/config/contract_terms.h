#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/config/config_reader.h"

// What a job allows its trainers to make of the sample stream: a contract and the limits of its
// parameters, as the TrainingJob says them. Pure but for parsing, thread-safe.
namespace stoker::sidecar {

// Which way a parameter is narrower, so closer to `exact`.
enum class Narrower : std::uint8_t { kLess, kMore, kSame };

// A parameter of a contract; docs/reference/sampling-contracts.md says what each one means.
struct ContractParameter {
    std::string_view contract;
    std::string_view name;  // as in the TrainingJob
    double least = 0;
    double most = 0;
    double step = 0;  // it is a multiple of this; 0: any number
    Narrower narrower = Narrower::kSame;
    std::array<std::string_view, 3> words{};  // a word, which travels as its place here
};

std::span<const ContractParameter> contract_parameters();

struct ContractTerms {
    std::string contract = "exact";
    std::map<std::string, double, std::less<>> parameters;  // what is left out is not limited

    bool operator==(const ContractTerms&) const = default;
};

// "exact", "importance", "replicate", "windowed"
bool is_contract(std::string_view name);

// The keys "contract" and "sampling" (the parameters) of a dataset; nothing where there is neither.
// Mistakes go to `in`, all of them.
std::optional<ContractTerms> read_contract(config::ConfigReader& in);

// What the trainer gets when the job allows `allowed` and it asks for `asked`: its own parameters,
// and the job's where it says nothing. kInvalidArgument: it asks for more than it may; the message
// says what may be asked. An unknown contract or parameter is left to whoever draws.
Result<ContractTerms> narrow(const ContractTerms& allowed, const ContractTerms& asked);

}  // namespace stoker::sidecar
