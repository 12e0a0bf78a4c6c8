#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/epoch_length.h"
#include "sidecar/core/eviction/party.h"

namespace stoker::sidecar {

// Settings that all ranks of a job must share; they identify its sampler. All ranks make the same
// choices from the same seed, so their shares fit together without communication between nodes.
struct SamplerSettings {
    std::string contract = {};
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;  // of the whole job, on all nodes
    std::uint32_t batch = 1;
    domain::ContractValues parameters = {};  // contract parameters that were set
    Party party = kOwnParty;

    // Whether `importance` means IOWA's buckets instead of iCACHE's sampling.
    [[nodiscard]] bool is_iowa() const { return domain::is_iowa(parameters); }

    // Value of a contract parameter: as set, or the default in common/domain/contract_table.h,
    // which must list the parameter.
    [[nodiscard]] double number(std::string_view name) const {
        return domain::number_of(contract, parameters, name);
    }

    template <class Count>
    [[nodiscard]] Count count(std::string_view name) const {
        return static_cast<Count>(number(name));
    }

    // Whether the epoch reads all samples, whatever their losses.
    [[nodiscard]] bool reads_all(std::uint64_t epoch) const {
        return domain::reads_all(contract, parameters, epoch);
    }

    // The most draws of a rank whose share has `turns` samples; with several ranks, each makes
    // exactly this many.
    [[nodiscard]] std::uint32_t draws_of_epoch(std::uint64_t epoch, std::uint32_t turns) const {
        return domain::draws_of_epoch(contract, parameters, ranks, epoch, turns);
    }

    // Checks the settings for a dataset of `samples`. kInvalidArgument: no samples, no ranks, a
    // parameter that the contract's family does not have, or one outside its bounds; the message
    // names it.
    [[nodiscard]] Status check(std::uint32_t samples) const;

    bool operator==(const SamplerSettings&) const = default;
};

}  // namespace stoker::sidecar
