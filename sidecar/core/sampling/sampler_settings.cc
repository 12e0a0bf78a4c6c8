#include "sidecar/core/sampling/sampler_settings.h"

#include <vector>

#include <fmt/format.h>

#include "common/domain/contract_table.h"

namespace stoker::sidecar {

namespace {

constexpr std::string_view kWarmup = "warmupEpochs";  // both families of `importance` have one

bool has(const SamplerSettings& settings, const domain::ContractParameter& row) {
    const std::string_view family = settings.is_iowa() ? "Iowa" : "ICache";
    return row.contract == settings.contract &&
           (row.family.empty() || row.family == family || row.name == kWarmup);
}

Status refuse_unknown(const SamplerSettings& settings, std::string_view name) {
    std::vector<std::string_view> known;
    for (const domain::ContractParameter& row : domain::kContractParameters) {
        if (has(settings, row)) {
            known.push_back(row.name);
        }
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "contract '{}' has no parameter '{}' here; it has: {}",
            settings.contract,
            name,
            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

Status SamplerSettings::check(std::uint32_t samples) const {
    if (samples == 0 || ranks == 0) {
        return fail(ErrorCode::kInvalidArgument, "a sampler needs at least 1 sample and 1 rank");
    }
    for (const auto& [name, value] : parameters) {
        const domain::ContractParameter* row = domain::find_parameter(contract, name);
        if (row == nullptr || !has(*this, *row)) {
            return refuse_unknown(*this, name);
        }
        if (!(value >= row->least && value <= row->most)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("{} is {}, outside {}..{}", name, value, row->least, row->most));
        }
        if (!row->allows(value)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("{} is {}, not a multiple of {}", name, value, row->step));
        }
    }
    return {};
}

}  // namespace stoker::sidecar
