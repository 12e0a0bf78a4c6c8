#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/domain/contract_table.h"
#include "operator/api/choices.h"

// The parameters of a sampling contract in a spec; common/domain/contract_table.h has their names
// and bounds.
namespace stoker::control {

// The member of spec.datasets[] that holds a contract's parameters, for example "windowed"; pods
// get the same name. kExact has none.
constexpr std::string_view contract_member(Contract contract) {
    return domain::kContracts[static_cast<std::size_t>(contract)];
}

// Parameters in a spec; the library chooses the missing ones.
struct ContractParameters {
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> words;

    bool operator==(const ContractParameters&) const = default;
};

}  // namespace stoker::control
