#include "common/base/quantity.h"

#include <array>
#include <optional>

#include <fmt/format.h>

namespace stoker {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kLimit = Wide{1} << 63U;
constexpr int kFractionDigitsMax = 18;
constexpr int kExponentMax = 18;

// A number in parts: mantissa / 10^decimals, times 2^binary, times 10^decimal.
struct Scale {
    int binary = 0;
    int decimal = 0;
};

struct Suffix {
    std::string_view text;
    Scale scale;
};

constexpr std::array kSuffixes = {
    Suffix{"", {0, 0}},
    Suffix{"Ki", {10, 0}},
    Suffix{"Mi", {20, 0}},
    Suffix{"Gi", {30, 0}},
    Suffix{"Ti", {40, 0}},
    Suffix{"Pi", {50, 0}},
    Suffix{"Ei", {60, 0}},
    Suffix{"n", {0, -9}},
    Suffix{"u", {0, -6}},
    Suffix{"m", {0, -3}},
    Suffix{"k", {0, 3}},
    Suffix{"M", {0, 6}},
    Suffix{"G", {0, 9}},
    Suffix{"T", {0, 12}},
    Suffix{"P", {0, 15}},
    Suffix{"E", {0, 18}},
};

// Parses "e9", "E+9" or "e-3".
std::optional<Scale> parse_exponent(std::string_view text) {
    if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) {
        return std::nullopt;
    }
    const bool negative = text[1] == '-';
    text.remove_prefix(negative || text[1] == '+' ? 2 : 1);
    if (text.empty() || text.size() > 2) {
        return std::nullopt;
    }
    int value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        value = value * 10 + (c - '0');
    }
    if (value > kExponentMax) {
        return std::nullopt;
    }
    return Scale{0, negative ? -value : value};
}

std::optional<Scale> parse_scale(std::string_view text) {
    for (const Suffix& suffix : kSuffixes) {
        if (suffix.text == text) {
            return suffix.scale;
        }
    }
    return parse_exponent(text);
}

Wide power_of_ten(int exponent) {
    Wide result = 1;
    for (int i = 0; i < exponent; ++i) {
        result *= 10;
    }
    return result;
}

// The value as a fraction of two 64-bit numbers; nullopt for 2^63 and more.
struct Fraction {
    Wide numerator = 0;
    Wide denominator = 1;
};

struct Decimal {
    Wide mantissa = 0;
    int decimals = 0;
    std::string_view rest;
};

// Splits "1.50Gi" into 150, 2 and "Gi".
std::optional<Decimal> parse_decimal(std::string_view text) {
    Decimal result;
    bool seen_point = false;
    std::size_t digit_count = 0;
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '.' && !seen_point) {
            seen_point = true;
            continue;
        }
        if (c < '0' || c > '9') {
            break;
        }
        result.mantissa = result.mantissa * 10 + static_cast<unsigned>(c - '0');
        result.decimals += seen_point ? 1 : 0;
        ++digit_count;
        if (result.mantissa >= kLimit || result.decimals > kFractionDigitsMax) {
            return std::nullopt;
        }
    }
    result.rest = text.substr(i);
    return digit_count == 0 ? std::nullopt : std::optional(result);
}

Result<Fraction> parse_fraction(std::string_view text) {
    const auto refused = [&](std::string_view why) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' {}", text, why));
    };
    if (text.starts_with('-')) {
        return refused("is negative");
    }
    const auto decimal = parse_decimal(text.starts_with('+') ? text.substr(1) : text);
    const auto scale = decimal ? parse_scale(decimal->rest) : std::nullopt;
    if (!decimal || !scale) {
        return refused("is not a quantity");
    }
    const int exponent = scale->decimal - decimal->decimals;
    Fraction result{decimal->mantissa, power_of_ten(exponent < 0 ? -exponent : 0)};
    // The mantissa is below 2^63 and 10^18 below 2^60, so the product fits in 128 bits. A suffix
    // scales by a power of ten or of two, never by both.
    result.numerator *= power_of_ten(exponent > 0 ? exponent : 0);
    result.numerator <<= static_cast<unsigned>(scale->binary);
    if (result.numerator / result.denominator >= kLimit) {
        return refused("is too large");
    }
    return result;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
    STOKER_TRY(const Fraction value, parse_fraction(text));
    const Wide rounded_up = (value.numerator + value.denominator - 1) / value.denominator;
    return Bytes{static_cast<std::uint64_t>(rounded_up)};
}

Result<std::int64_t> parse_whole(std::string_view text) {
    STOKER_TRY(const Fraction value, parse_fraction(text));
    return static_cast<std::int64_t>(value.numerator / value.denominator);
}

}  // namespace stoker
