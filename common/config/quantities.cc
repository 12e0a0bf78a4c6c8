#include <array>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "common/base/quantity.h"
#include "common/config/config_reader.h"

namespace stoker::config {

namespace {

struct Split {
    double number = 0;
    std::string_view unit;
};

// Splits a decimal number without sign or exponent from its suffix.
Result<Split> split(std::string_view text) {
    const auto digits = text.find_first_not_of("0123456789.");
    const std::string_view number = text.substr(0, digits);
    Split out;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), out.number);
    if (number.empty() || error != std::errc{} || end != number.data() + number.size()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" has no number", text));
    }
    out.unit = digits == std::string_view::npos ? std::string_view{} : text.substr(digits);
    return out;
}

template <std::size_t Count>
const double* find_unit(
    const std::array<std::pair<std::string_view, double>, Count>& units, std::string_view unit) {
    for (const auto& [name, factor] : units) {
        if (name == unit) {
            return &factor;
        }
    }
    return nullptr;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
    if (text == "unlimited") {
        return Bytes::unlimited();
    }
    // Kubernetes accepts the suffixes m, u and n, too; for a number of bytes they are probably a
    // typing error for Mi.
    const bool is_slip = text.find_first_of("mun") != std::string_view::npos;
    const Result<Bytes> bytes = stoker::parse_bytes(text);
    if (is_slip || !bytes) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is not a number of bytes, such as 256Mi", text));
    }
    return bytes;
}

Result<Duration> parse_duration(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
        {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
    const auto parts = split(text);
    const double* factor = parts ? find_unit(kUnits, parts->unit) : nullptr;
    if (factor == nullptr || parts->number * *factor >= 0x1p62) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is not a time, such as 250ms, 30s or 5m", text));
    }
    return Duration{static_cast<std::int64_t>(parts->number * *factor)};
}

}  // namespace stoker::config
