#include "operator/api/time_format.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr std::size_t kSecondsLength = 19;  // of "2026-01-31T12:00:00"
constexpr std::size_t kFractionDigitsMax = 9;
constexpr std::chrono::year kFirstYear{1970};
constexpr std::chrono::year kEndYear{2200};

std::optional<int> digits(std::string_view text, std::size_t begin, std::size_t count) {
    int value = 0;
    for (const char c : text.substr(begin, count)) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        value = value * 10 + (c - '0');
    }
    return value;
}

bool has_shape(std::string_view text) {
    return text.size() > kSecondsLength && text[4] == '-' && text[7] == '-' && text[10] == 'T' &&
           text[13] == ':' && text[16] == ':' && text.back() == 'Z';
}

// Parses ".123456Z" or "Z".
std::optional<std::chrono::nanoseconds> fraction(std::string_view text) {
    if (text == "Z") {
        return std::chrono::nanoseconds{0};
    }
    const std::string_view decimals = text.substr(1, text.size() - 2);
    if (text.front() != '.' || decimals.empty() || decimals.size() > kFractionDigitsMax) {
        return std::nullopt;
    }
    std::optional<int> value = digits(decimals, 0, decimals.size());
    for (std::size_t i = decimals.size(); value && i < kFractionDigitsMax; ++i) {
        *value *= 10;
    }
    return value ? std::optional(std::chrono::nanoseconds{*value}) : std::nullopt;
}

}  // namespace

Result<WallTime> parse_time(std::string_view text) {
    const auto refused = [&] {
        return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not an RFC 3339 time", text));
    };
    if (!has_shape(text)) {
        return refused();
    }
    const auto year = digits(text, 0, 4);
    const auto month = digits(text, 5, 2);
    const auto day = digits(text, 8, 2);
    const auto hour = digits(text, 11, 2);
    const auto minute = digits(text, 14, 2);
    const auto second = digits(text, 17, 2);
    const auto rest = fraction(text.substr(kSecondsLength));
    if (!year || !month || !day || !hour || !minute || !second || !rest) {
        return refused();
    }
    const std::chrono::year_month_day date{
        std::chrono::year{*year},
        std::chrono::month{static_cast<unsigned>(*month)},
        std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
        return refused();
    }
    if (date.year() < kFirstYear || date.year() >= kEndYear) {
        const std::chrono::year nearest = std::clamp(date.year(), kFirstYear, kEndYear);
        return WallTime{std::chrono::sys_days{nearest / std::chrono::January / 1}};
    }
    return WallTime{std::chrono::sys_days{date}} + std::chrono::hours{*hour} +
           std::chrono::minutes{*minute} + std::chrono::seconds{*second} + *rest;
}

std::string format_time(WallTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
    return fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        clock.hours().count(),
        clock.minutes().count(),
        clock.seconds().count());
}

}  // namespace stoker::control
