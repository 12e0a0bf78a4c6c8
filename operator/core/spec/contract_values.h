#pragma once

#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/domain/contract_table.h"
#include "operator/api/training_job.h"

// Values of contract parameters: those of the job, otherwise the defaults of the contract table.
namespace stoker::control {

// Contract importance in family ICache, the default.
inline bool is_icache(const JobDataset& dataset) {
    if (dataset.contract != Contract::kImportance) {
        return false;
    }
    const auto given = dataset.parameters.find(dataset.contract);
    if (given == dataset.parameters.end() || !given->second.words.contains("family")) {
        return true;
    }
    return given->second.words.at("family") == "ICache";
}

// The value of the contract's numeric parameter `name` (as in the CRD), or its default.
inline double number_of(const JobDataset& dataset, std::string_view name) {
    const auto given = dataset.parameters.find(dataset.contract);
    if (given != dataset.parameters.end()) {
        const auto number = given->second.numbers.find(std::string{name});
        if (number != given->second.numbers.end()) {
            return number->second;
        }
    }
    const auto* row = domain::find_parameter(contract_member(dataset.contract), name);
    STOKER_CHECK(row != nullptr, "every parameter of a contract is in the table");
    const bool is_iowa = dataset.contract == Contract::kImportance && !is_icache(dataset);
    return domain::standard_for(*row, is_iowa);
}

}  // namespace stoker::control
