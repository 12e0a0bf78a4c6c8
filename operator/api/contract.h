#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "operator/api/choices.h"

// The parameters of the sampling contracts, one row each: the CRD, the parser, the validation and
// what pods are told follow this table.
namespace stoker::control {

// The member of spec.datasets[] that holds a contract's parameters; empty for kExact, which has
// none. Lower-case, it is also what pods are told: "windowed".
constexpr std::string_view contract_member(Contract contract) {
    constexpr std::array<std::string_view, 4> kMembers{"", "windowed", "importance", "replicate"};
    return kMembers[static_cast<std::size_t>(contract)];
}

// A parameter that is a number.
struct ContractNumber {
    Contract contract = Contract::kExact;
    std::string_view name;
    double min = 0;
    double max = 0;
    double step = 0;            // it is a multiple of this; 0: any number
    std::string_view family{};  // the only family of kImportance that knows it; empty: all
};

inline constexpr std::array kContractNumbers = {
    ContractNumber{Contract::kWindowed, "chunkGroup", 1, 65536, 1},
    ContractNumber{Contract::kWindowed, "drift", 0, 1, 0},
    ContractNumber{Contract::kImportance, "beta", 0, 16, 0, "ICache"},
    ContractNumber{Contract::kImportance, "warmupEpochs", 0, 10000, 1, "ICache"},
    ContractNumber{Contract::kImportance, "reuseFactor", 1, 10000, 1, "ICache"},
    ContractNumber{Contract::kImportance, "hShare", 0, 1, 0, "ICache"},
    ContractNumber{Contract::kImportance, "lShare", 0, 1, 0, "ICache"},
    ContractNumber{Contract::kImportance, "lossHistory", 2, 1048576, 1, "ICache"},
    ContractNumber{Contract::kImportance, "outRate", 0, 1, 0, "Iowa"},
    ContractNumber{Contract::kImportance, "minFraction", 0, 1, 0, "Iowa"},
    ContractNumber{Contract::kImportance, "recallAfter", 1, 10000, 1, "Iowa"},
    ContractNumber{Contract::kImportance, "recallFraction", 0, 1, 0, "Iowa"},
    ContractNumber{Contract::kReplicate, "replication", 1, 64, 0.5},
    ContractNumber{Contract::kReplicate, "bias", 2, 1000, 0},
};

// A parameter that is one of some words.
struct ContractWord {
    Contract contract = Contract::kExact;
    std::string_view name;
    std::array<std::string_view, 3> choices;  // unused ones are empty
    std::string_view family{};                // as above
};

inline constexpr std::array kContractWords = {
    ContractWord{Contract::kImportance, "family", {"ICache", "Iowa"}},
    ContractWord{Contract::kImportance, "redundancy", {"None", "Remove", "Repeat"}, "Iowa"},
};

inline constexpr std::string_view kDefaultFamily = "ICache";

// What a spec says; what it leaves out is chosen by the library.
struct ContractParameters {
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> words;

    bool operator==(const ContractParameters&) const = default;
};

}  // namespace stoker::control
