#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

// How many samples a rank draws in an epoch. All ranks of a job must draw equally many, or a
// collective call would wait for ever; this includes ranks without a sidecar and ranks whose nodes
// know different losses. So with several ranks, the number depends only on the contract's
// parameters and the epoch. Sidecar and client compute it here, with integer arithmetic, so it is
// the same on every machine. Pure, thread-safe.
namespace stoker::domain {

// Parameters that were set, by name; the others have the defaults of contract_table.h.
using ContractValues = std::map<std::string, double, std::less<>>;

// Whether contract `importance` uses IOWA's buckets instead of iCACHE's sampling.
bool is_iowa(const ContractValues& values);

// Value of a parameter: as set, or the contract's default in contract_table.h.
double number_of(std::string_view contract, const ContractValues& values, std::string_view name);

// Checks set parameters. kInvalidArgument: the contract's family does not have one of them, or its
// value is out of bounds; the message names it. The functions below need checked values.
Status check_values(std::string_view contract, const ContractValues& values);

// Whether the epoch reads all samples, whatever their losses; always, except with `importance`.
bool reads_all(std::string_view contract, const ContractValues& values, std::uint64_t epoch);

// The most draws of a rank in an epoch, at least 1. `share`: the samples that the epoch deals to
// the rank. A job of one rank may draw all of them; with more `ranks` each makes exactly this many
// draws:
// - importance, ICache: share / (1 + beta) in a selective epoch.
// - importance, Iowa: the part of `share` that is not taken out. Each epoch takes outRate of the
//   last one's samples out, but leaves minFraction of all; after every recallAfter such epochs one
//   epoch recalls recallFraction of the samples that are out.
// - otherwise: share.
std::uint32_t draws_of_epoch(
    std::string_view contract,
    const ContractValues& values,
    std::uint32_t ranks,
    std::uint64_t epoch,
    std::uint32_t share);

}  // namespace stoker::domain
