#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

// The sampling contracts and their parameters, one row each: bounds, default, and the values that a
// program may choose within a TrainingJob's limit. The operator's parser and validation, the
// sidecar's settings and samplers, the simulator's flags and the Python client use this table.
// Contract tests compare it with the CRD and docs/reference/sampling-contracts.md. Pure,
// thread-safe.
namespace stoker::domain {

inline constexpr std::array<std::string_view, 4> kContracts{
    "exact", "windowed", "importance", "replicate"};

// The contracts that a program may choose if its TrainingJob allows `contract`: `contract` first,
// `exact` last.
inline std::vector<std::string_view> allowed_by(std::string_view contract) {
    std::vector<std::string_view> result{contract};
    for (const std::string_view narrower : {kContracts[1], kContracts[0]}) {
        if (contract != kContracts[0] && contract != narrower) {
            result.push_back(narrower);
        }
    }
    return result;
}

// The direction in which a parameter becomes narrower, that is closer to contract `exact`. kSame: a
// program may only repeat the job's value.
enum class Narrower : std::uint8_t { kLess, kMore, kSame };

// The lowest source that may set a parameter; the sources listed after it may set it, too.
enum class SetBy : std::uint8_t {
    kTrainingJob,  // a TrainingJob: the parameter is in the CRD
    kProgram,      // the program, or the sidecar's settings
    kExperiment,   // only a direct client of the sidecar, such as `stoker simulate`
};

struct ContractParameter {
    std::string_view contract;
    std::string_view name;  // as in the TrainingJob
    double least = 0;
    double most = 0;
    double step = 0;      // the value is a multiple of this; 0: any number
    double standard = 0;  // default
    Narrower narrower = Narrower::kSame;
    SetBy set_by = SetBy::kTrainingJob;
    std::string_view family{};                // family that has the parameter; empty: every family
    std::array<std::string_view, 3> words{};  // as in the TrainingJob; the value is the index

    [[nodiscard]] constexpr bool is_word() const { return !words.front().empty(); }

    // True if the CRD has the parameter among those of `the_contract`.
    [[nodiscard]] constexpr bool is_of_the_job(std::string_view the_contract) const {
        return contract == the_contract && set_by == SetBy::kTrainingJob;
    }

    // Whether the value is in the row's range. False for NaN.
    [[nodiscard]] bool allows(double value) const {
        return value >= least && value <= most && (step == 0 || std::fmod(value, step) == 0);
    }
};

inline constexpr std::array kContractParameters = [] {
    using enum Narrower;
    using enum SetBy;
    using Row = ContractParameter;
    constexpr std::string_view kWindowed = kContracts[1];
    constexpr std::string_view kImportance = kContracts[2];
    constexpr std::string_view kReplicate = kContracts[3];
    // The members of a Row in order: contract, name, least, most, step, standard, ...
    return std::array{
        // A chunkGroup of 0 means no groups; a program cannot request 0.
        Row{kWindowed, "chunkGroup", 1, 65536, 1, 0, kSame},
        Row{kWindowed, "drift", 0, 1, 0, 0.02, kLess},
        Row{kImportance, "family", 0, 1, 1, 0, kSame, kTrainingJob, {}, {"ICache", "Iowa"}},
        Row{kImportance, "beta", 0, 16, 0, 0.33, kLess, kTrainingJob, "ICache"},
        Row{kImportance, "warmupEpochs", 0, 10000, 1, 5, kMore, kTrainingJob, "ICache"},
        Row{kImportance, "reuseFactor", 1, 10000, 1, 3, kLess, kTrainingJob, "ICache"},
        Row{kImportance, "hShare", 0, 1, 0, 0.7, kMore, kTrainingJob, "ICache"},
        Row{kImportance, "lShare", 0, 1, 0, 0.1, kLess, kTrainingJob, "ICache"},
        Row{kImportance, "lossHistory", 2, 1048576, 1, 1024, kSame, kTrainingJob, "ICache"},
        Row{kImportance, "substitute", 0, 1, 1, 1, kLess, kProgram, "ICache"},
        Row{kImportance, "outRate", 0, 1, 0, 0.1, kLess, kTrainingJob, "Iowa"},
        Row{kImportance, "minFraction", 0, 1, 0, 0.3, kMore, kTrainingJob, "Iowa"},
        Row{kImportance, "recallAfter", 1, 10000, 1, 3, kLess, kTrainingJob, "Iowa"},
        Row{kImportance, "recallFraction", 0, 1, 0, 0.5, kMore, kTrainingJob, "Iowa"},
        Row{kImportance,
            "redundancy",
            0,
            2,
            1,
            0,
            kLess,
            kTrainingJob,
            "Iowa",
            {"None", "Remove", "Repeat"}},
        Row{kReplicate, "replication", 1, 64, 0.5, 1, kLess},
        Row{kReplicate, "bias", 2, 1000, 0, 10, kMore},
        Row{kReplicate, "warmupEpochs", 0, 10000, 1, 1, kMore, kExperiment},
        Row{kReplicate, "unseenScore", 0, 100, 0, 0, kSame, kExperiment},
    };
}();

// The default of importance.warmupEpochs in family Iowa.
inline constexpr std::uint64_t kIowaWarmupEpochs = 1;

// The default of a row for a job, which may be of family Iowa.
constexpr double standard_for(const ContractParameter& row, bool is_iowa) {
    const bool own = is_iowa && row.name == "warmupEpochs";
    return own ? static_cast<double>(kIowaWarmupEpochs) : row.standard;
}

// nullptr: the contract has no such parameter.
constexpr const ContractParameter* find_parameter(
    std::string_view contract, std::string_view name) {
    for (const ContractParameter& row : kContractParameters) {
        if (row.contract == contract && row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

// A default value that converts to the number type of its reader.
struct Standard {
    double value = 0;

    template <class T>
    constexpr operator T() const {  // NOLINT(google-explicit-constructor): a default initialiser
        return static_cast<T>(value);
    }
};

// The default of a parameter; an unknown name does not compile.
consteval Standard standard_of(std::string_view contract, std::string_view name) {
    return {find_parameter(contract, name)->standard};
}

}  // namespace stoker::domain
