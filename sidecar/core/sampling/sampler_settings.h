#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "sidecar/core/eviction/party.h"

namespace stoker::sidecar {

// What all ranks of a job have to agree on: it names their sampler. All ranks make the same choices
// from the same seed, so that their shares fit together without a word between nodes.
struct SamplerSettings {
    std::string contract = {};
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;  // of the whole job, on all nodes
    std::uint32_t batch = 1;
    std::map<std::string, double, std::less<>> parameters = {};  // of the contract; those given
    Party party = kOwnParty;

    // Does the job read `importance` by the buckets of IOWA instead of iCACHE's sampling?
    [[nodiscard]] bool is_iowa() const;

    // A parameter of the contract: as given, or the default of common/domain/contract_table.h,
    // which must have it.
    [[nodiscard]] double number(std::string_view name) const;

    template <class Count>
    [[nodiscard]] Count count(std::string_view name) const {
        return static_cast<Count>(number(name));
    }

    // For a dataset of `samples`. kInvalidArgument: no samples, no ranks, a parameter that the
    // contract's family does not have, or one outside its bounds; the message names it.
    [[nodiscard]] Status check(std::uint32_t samples) const;

    bool operator==(const SamplerSettings&) const = default;
};

}  // namespace stoker::sidecar
