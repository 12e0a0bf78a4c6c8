#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

// How many samples a rank draws in an epoch. All ranks of a job must draw equally many, since a
// collective call would otherwise wait for ever: also ranks without a sidecar, and ranks whose
// nodes know different losses. So with several ranks the number follows from the contract's
// parameters and the epoch alone. Sidecar and client compute it here. Integer arithmetic, so it is
// the same on every machine. Pure, thread-safe.
namespace stoker::domain {

// Parameters that were set, by name; the others have the defaults of contract_table.h.
using ContractValues = std::map<std::string, double, std::less<>>;

// Whether contract `importance` uses IOWA's buckets instead of iCACHE's sampling.
bool is_iowa(const ContractValues& values);

// The value of a parameter that contract_table.h has for the contract.
double number_of(std::string_view contract, const ContractValues& values, std::string_view name);

// kInvalidArgument: a parameter that the contract's family does not have, or a value outside its
// bounds; the message names it. The functions below need checked values.
Status check_values(std::string_view contract, const ContractValues& values);

// Whether the epoch reads all samples, whatever their losses. True for all other contracts.
bool reads_all(std::string_view contract, const ContractValues& values, std::uint64_t epoch);

// The most draws of a rank, of `share` samples that the epoch deals to it. One rank may draw all of
// them. Several `ranks` make exactly so many:
// - importance, ICache: share / (1 + beta) in a selective epoch.
// - importance, Iowa: the share of the samples in the bucket. Each epoch takes outRate of it out,
//   but leaves minFraction of all samples; after every recallAfter such epochs one recalls
//   recallFraction of the samples outside.
// - otherwise `share`.
// At least 1.
std::uint32_t draws_of_epoch(
    std::string_view contract,
    const ContractValues& values,
    std::uint32_t ranks,
    std::uint64_t epoch,
    std::uint32_t share);

}  // namespace stoker::domain
