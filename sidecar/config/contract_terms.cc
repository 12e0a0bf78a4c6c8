#include "sidecar/config/contract_terms.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/base/lower_case.h"
#include "common/domain/contract_table.h"

namespace stoker::sidecar {

namespace {

using config::ConfigReader;
using domain::ContractParameter;
using domain::Narrower;

void read_word(ConfigReader& in, const ContractParameter& row, ContractTerms& terms) {
    std::string word;
    in.read(row.name, word);
    std::vector<std::string> words;
    for (auto place = 0U; place <= row.most; ++place) {
        words.push_back(lower_case(row.words.at(place)));
    }
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) {
        in.mistake(row.name, fmt::format("\"{}\" is none of {}", word, fmt::join(words, ", ")));
        return;
    }
    terms.parameters.emplace(row.name, static_cast<double>(found - words.begin()));
}

void read_number(ConfigReader& in, const ContractParameter& row, ContractTerms& terms) {
    double value = row.least;
    in.read(row.name, value);
    if (!row.allows(value)) {
        const std::string steps = row.step == 0 ? "" : fmt::format(" in steps of {}", row.step);
        in.mistake(
            row.name, fmt::format("must be a number from {} to {}{}", row.least, row.most, steps));
        return;
    }
    terms.parameters.emplace(row.name, value);
}

// Reads the parameters of all contracts, so that an error can name the contract of a parameter.
void read_parameters(ConfigReader& in, ContractTerms& terms) {
    for (const ContractParameter& row : domain::kContractParameters) {
        if (row.set_by == domain::SetBy::kExperiment || !in.has(row.name)) {
            continue;
        }
        if (row.contract != terms.contract) {
            std::string unread;
            in.read(row.name, unread);
            in.mistake(
                row.name,
                fmt::format("belongs to contract {}, not to {}", row.contract, terms.contract));
        } else if (!row.is_word()) {
            read_number(in, row, terms);
        } else {
            read_word(in, row, terms);
        }
    }
}

// The text of the job's limit: "at most 0.33".
std::string rule_of(const ContractParameter& row, double limit) {
    if (row.is_word()) {
        return lower_case(row.words.at(static_cast<std::size_t>(limit)));
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

std::optional<ContractTerms> read_contract(ConfigReader& in) {
    if (!in.has("contract") && !in.has("sampling")) {
        return std::nullopt;
    }
    ContractTerms terms;
    in.read("contract", terms.contract);
    if (std::ranges::find(domain::kContracts, terms.contract) == domain::kContracts.end()) {
        in.mistake(
            "contract",
            fmt::format(
                "\"{}\" is none of {}", terms.contract, fmt::join(domain::kContracts, ", ")));
        in.section("sampling", [](ConfigReader& sampling) {
            for (const ContractParameter& row : domain::kContractParameters) {
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
    const auto may = domain::allowed_by(allowed.contract);
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
        const ContractParameter* row = domain::find_parameter(allowed.contract, name);
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
