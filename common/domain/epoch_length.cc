#include "common/domain/epoch_length.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/domain/contract_table.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kImportance = kContracts[2];
constexpr std::string_view kWarmup = "warmupEpochs";

// The largest number of IOWA epochs computed one by one. After that many, the shares of samples
// repeat in each cycle of recallAfter + 1 epochs.
constexpr std::uint64_t kEpochsMost = 100'000;

// Shares in units of 2^-31, so that a product of two fits in 64 bits.
constexpr unsigned kShift = 31;
constexpr std::uint64_t kAll = std::uint64_t{1} << kShift;

// Added to a product before the shift to round it up, unless its excess over a whole number is so
// small that it may come from earlier rounding.
constexpr std::uint64_t kRoundUp = kAll - (kAll >> 10U);

std::uint64_t to_parts(double share) {
    return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(kAll)));
}

std::uint64_t part_of(std::uint64_t one, std::uint64_t other) {
    return (one * other) >> kShift;
}

// The share of all samples that IOWA reads in its selective epoch number `epochs`, counted from 1
// (docs/reference/sampling-contracts.md).
std::uint64_t bucket_after(std::uint64_t epochs, const ContractValues& values) {
    const auto number = [&values](std::string_view name) {
        return number_of(kImportance, values, name);
    };
    const auto recall_after = static_cast<std::uint64_t>(number("recallAfter"));
    const std::uint64_t out_rate = to_parts(number("outRate"));
    const std::uint64_t least = to_parts(number("minFraction"));
    const std::uint64_t recalled = to_parts(number("recallFraction"));
    const std::uint64_t cycle = recall_after + 1;
    if (epochs > kEpochsMost) {
        epochs = kEpochsMost - kEpochsMost % cycle + epochs % cycle;
    }
    std::uint64_t bucket = kAll;
    for (std::uint64_t i = 0; i < epochs; ++i) {
        bucket = i % cycle == recall_after ? bucket + part_of(recalled, kAll - bucket)
                                           : std::max(least, bucket - part_of(out_rate, bucket));
    }
    return bucket;
}

// Whether the contract's family has the parameter. Both families of `importance` have kWarmup.
bool has(std::string_view contract, const ContractValues& values, const ContractParameter& row) {
    const std::string_view family = is_iowa(values) ? "Iowa" : "ICache";
    return row.contract == contract &&
           (row.family.empty() || row.family == family || row.name == kWarmup);
}

Status refuse_unknown(
    std::string_view contract, const ContractValues& values, std::string_view name) {
    std::vector<std::string_view> known;
    for (const ContractParameter& row : kContractParameters) {
        if (has(contract, values, row)) {
            known.push_back(row.name);
        }
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "contract '{}' has no parameter '{}' here; it has: {}",
            contract,
            name,
            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

bool is_iowa(const ContractValues& values) {
    const auto family = values.find("family");
    return family != values.end() && family->second == 1;
}

double number_of(std::string_view contract, const ContractValues& values, std::string_view name) {
    if (const auto given = values.find(name); given != values.end()) {
        return given->second;
    }
    const ContractParameter* row = find_parameter(contract, name);
    STOKER_CHECK(row != nullptr, "the contract must have the parameter in the table");
    return standard_for(*row, is_iowa(values));
}

Status check_values(std::string_view contract, const ContractValues& values) {
    for (const auto& [name, value] : values) {
        const ContractParameter* row = find_parameter(contract, name);
        if (row == nullptr || !has(contract, values, *row)) {
            return refuse_unknown(contract, values, name);
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

bool reads_all(std::string_view contract, const ContractValues& values, std::uint64_t epoch) {
    if (contract != kImportance) {
        return true;
    }
    const auto count = [&values](std::string_view name) {
        return static_cast<std::uint64_t>(number_of(kImportance, values, name));
    };
    return epoch < count(kWarmup) || (!is_iowa(values) && epoch % count("reuseFactor") == 0);
}

std::uint32_t draws_of_epoch(
    std::string_view contract,
    const ContractValues& values,
    std::uint32_t ranks,
    std::uint64_t epoch,
    std::uint32_t share) {
    if (ranks == 1 || reads_all(contract, values, epoch)) {
        return share;
    }
    if (!is_iowa(values)) {
        return static_cast<std::uint32_t>(
            std::ceil(share / (1 + number_of(contract, values, "beta"))));
    }
    const auto warmup = static_cast<std::uint64_t>(number_of(contract, values, kWarmup));
    const std::uint64_t bucket = bucket_after(epoch - warmup + 1, values);
    const auto draws = static_cast<std::uint32_t>((share * bucket + kRoundUp) >> kShift);
    return std::max(draws, std::min(share, 1U));
}

}  // namespace stoker::domain
