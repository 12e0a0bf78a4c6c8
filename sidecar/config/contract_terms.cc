#include "sidecar/config/contract_terms.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace stoker::sidecar {

namespace {

using config::ConfigReader;

constexpr std::string_view kImportance = "importance";

constexpr std::array kParameters = {
    ContractParameter{"windowed", "chunkGroup", 1, 65536, 1, Narrower::kSame},
    ContractParameter{"windowed", "drift", 0, 1, 0, Narrower::kLess},
    ContractParameter{kImportance, "family", 0, 1, 1, Narrower::kSame, {"icache", "iowa"}},
    ContractParameter{kImportance, "beta", 0, 16, 0, Narrower::kLess},
    ContractParameter{kImportance, "warmupEpochs", 0, 10000, 1, Narrower::kMore},
    ContractParameter{kImportance, "reuseFactor", 1, 10000, 1, Narrower::kLess},
    ContractParameter{kImportance, "hShare", 0, 1, 0, Narrower::kMore},
    ContractParameter{kImportance, "lShare", 0, 1, 0, Narrower::kLess},
    ContractParameter{kImportance, "lossHistory", 2, 1U << 20U, 1, Narrower::kSame},
    ContractParameter{kImportance, "substitute", 0, 1, 1, Narrower::kLess},
    ContractParameter{kImportance, "outRate", 0, 1, 0, Narrower::kLess},
    ContractParameter{kImportance, "minFraction", 0, 1, 0, Narrower::kMore},
    ContractParameter{kImportance, "recallAfter", 1, 10000, 1, Narrower::kLess},
    ContractParameter{kImportance, "recallFraction", 0, 1, 0, Narrower::kMore},
    ContractParameter{
        kImportance, "redundancy", 0, 2, 1, Narrower::kLess, {"none", "remove", "repeat"}},
    ContractParameter{"replicate", "replication", 1, 64, 0.5, Narrower::kLess},
    ContractParameter{"replicate", "bias", 2, 1000, 0, Narrower::kMore},
};

const ContractParameter* find(std::string_view contract, std::string_view name) {
    const auto* found = std::ranges::find_if(kParameters, [&](const ContractParameter& row) {
        return row.contract == contract && row.name == name;
    });
    return found == kParameters.end() ? nullptr : found;
}

// The contracts that a job of this one may read under, the narrowest last.
std::vector<std::string_view> allowed_by(std::string_view contract) {
    if (contract == "exact") {
        return {"exact"};
    }
    if (contract == "windowed") {
        return {"windowed", "exact"};
    }
    return {contract, "windowed", "exact"};
}

void read_word(ConfigReader& in, const ContractParameter& row, ContractTerms& terms) {
    std::string word;
    in.read(row.name, word);
    const auto* found = std::ranges::find(row.words, std::string_view{word});
    if (word.empty() || found == row.words.end()) {
        const std::vector<std::string_view> words{
            row.words.begin(), std::ranges::find(row.words, std::string_view{})};
        in.mistake(row.name, fmt::format("\"{}\" is none of {}", word, fmt::join(words, ", ")));
        return;
    }
    terms.parameters.emplace(row.name, static_cast<double>(found - row.words.begin()));
}

void read_number(ConfigReader& in, const ContractParameter& row, ContractTerms& terms) {
    double value = row.least;
    in.read(row.name, value);
    const bool is_whole_steps = row.step == 0 || std::fmod(value, row.step) == 0;
    if (!(value >= row.least && value <= row.most && is_whole_steps)) {
        const std::string steps = row.step == 0 ? "" : fmt::format(" in steps of {}", row.step);
        in.mistake(
            row.name, fmt::format("must be a number from {} to {}{}", row.least, row.most, steps));
        return;
    }
    terms.parameters.emplace(row.name, value);
}

// Reads every parameter that there is, so that the reader knows those of other contracts too, and
// says whose they are.
void read_parameters(ConfigReader& in, ContractTerms& terms) {
    for (const ContractParameter& row : kParameters) {
        if (!in.has(row.name)) {
            continue;
        }
        if (row.contract != terms.contract) {
            std::string unread;
            in.read(row.name, unread);
            in.mistake(
                row.name,
                fmt::format("belongs to contract {}, not to {}", row.contract, terms.contract));
        } else if (row.words.front().empty()) {
            read_number(in, row, terms);
        } else {
            read_word(in, row, terms);
        }
    }
}

// How the job's limit reads: "at most 0.33".
std::string rule_of(const ContractParameter& row, double limit) {
    if (!row.words.front().empty()) {
        return std::string{row.words.at(static_cast<std::size_t>(limit))};
    }
    switch (row.narrower) {
        case Narrower::kLess:
            return fmt::format("at most {}", limit);
        case Narrower::kMore:
            return fmt::format("at least {}", limit);
        case Narrower::kSame:
            break;
    }
    return fmt::format("{}", limit);
}

bool is_within(const ContractParameter& row, double limit, double value) {
    return value == limit || (row.narrower == Narrower::kLess && value < limit) ||
           (row.narrower == Narrower::kMore && value > limit);
}

}  // namespace

std::span<const ContractParameter> contract_parameters() {
    return kParameters;
}

bool is_contract(std::string_view name) {
    return name == "exact" || name == "windowed" || name == kImportance || name == "replicate";
}

std::optional<ContractTerms> read_contract(ConfigReader& in) {
    if (!in.has("contract") && !in.has("sampling")) {
        return std::nullopt;
    }
    ContractTerms terms;
    in.read("contract", terms.contract);
    if (!is_contract(terms.contract)) {
        in.mistake(
            "contract",
            fmt::format(
                "\"{}\" is none of exact, windowed, importance, replicate", terms.contract));
        in.section("sampling", [](ConfigReader& sampling) {
            for (const ContractParameter& row : kParameters) {
                std::string unread;
                sampling.read(row.name, unread);
            }
        });
        return terms;
    }
    in.section("sampling", [&terms](ConfigReader& sampling) { read_parameters(sampling, terms); });
    return terms;
}

Result<ContractTerms> narrow(const ContractTerms& allowed, const ContractTerms& asked) {
    const auto may = allowed_by(allowed.contract);
    if (std::ranges::find(may, asked.contract) == may.end()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the job allows contract '{}', so its trainers may ask for '{}', not for '{}'",
                allowed.contract,
                fmt::join(may, "' or '"),
                asked.contract));
    }
    if (asked.contract != allowed.contract) {
        return asked;
    }
    ContractTerms both = asked;
    for (const auto& [name, limit] : allowed.parameters) {
        const auto [given, is_missing] = both.parameters.emplace(name, limit);
        const ContractParameter* row = find(allowed.contract, name);
        if (!is_missing && row != nullptr && !is_within(*row, limit, given->second)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "the job sets {}={}; its trainers may ask for {}, not for {}",
                    name,
                    limit,
                    rule_of(*row, limit),
                    given->second));
        }
    }
    return both;
}

}  // namespace stoker::sidecar
