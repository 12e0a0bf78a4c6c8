#include "operator/core/spec/cron.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/base/lower_case.h"
#include "common/base/split.h"

namespace stoker::control {

namespace {

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::sys_days;

enum Index : std::size_t { kMinute, kHour, kDay, kMonth, kWeekday };

constexpr std::array<std::string_view, 12> kMonths = {
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct FieldRange {
    std::string_view name;
    unsigned min;
    unsigned max;
    unsigned last;                              // end of the range of "N/STEP"
    std::span<const std::string_view> words{};  // of min, min + 1, ...
};

const std::array<FieldRange, 5> kRanges = {
    {{"minute", 0, 59, 59},
     {"hour", 0, 23, 23},
     {"day of the month", 1, 31, 31},
     {"month", 1, 12, 12, kMonths},
     {"day of the week", 0, 7, 6, kWeekdays}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros = {
    {{"@hourly", "0 * * * *"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@weekly", "0 0 * * 0"},
     {"@monthly", "0 0 1 * *"},
     {"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"}}};

std::optional<unsigned> parse_digits(std::string_view text) {
    unsigned number = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional(number) : std::nullopt;
}

// A number or a word of the field, within its range.
std::optional<unsigned> parse_value(std::string_view text, const FieldRange& range) {
    const auto word = std::ranges::find(range.words, text);
    const std::optional<unsigned> value =
        word != range.words.end()
            ? std::optional(range.min + static_cast<unsigned>(word - range.words.begin()))
            : parse_digits(text);
    return value && *value >= range.min && *value <= range.max ? value : std::nullopt;
}

// The bits of "*", "N", "N-M", "*/STEP", "N/STEP" or "N-M/STEP".
std::optional<std::uint64_t> parse_part(std::string_view text, const FieldRange& range) {
    const std::size_t slash = text.find('/');
    const bool steps = slash != std::string_view::npos;
    const std::optional<unsigned> step = steps ? parse_digits(text.substr(slash + 1)) : 1;
    text = text.substr(0, slash);
    std::optional<unsigned> first = range.min;
    std::optional<unsigned> last = range.last;
    if (text != "*") {
        const std::size_t dash = text.find('-');
        first = parse_value(text.substr(0, dash), range);
        if (dash != std::string_view::npos) {
            last = parse_value(text.substr(dash + 1), range);
        } else if (!steps || first > last) {
            last = first;
        }
    }
    if (!step || *step == 0 || !first || !last || *first > *last) {
        return std::nullopt;
    }
    std::uint64_t bits = 0;
    for (unsigned value = *first; value <= *last; value += std::min(*step, range.max + 1)) {
        bits |= std::uint64_t{1} << value;
    }
    return bits;
}

bool has(std::uint64_t bits, unsigned value) {
    return (bits >> value & 1U) != 0;
}

}  // namespace

Result<CronSchedule::Field> CronSchedule::parse_field(std::string_view text, std::size_t index) {
    const FieldRange& range = kRanges.at(index);
    Field field;
    field.any = text.starts_with('*');
    for (const std::string_view part : split(text, ',')) {
        const std::optional<std::uint64_t> bits = parse_part(part, range);
        if (!bits) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not a valid {} of a schedule", part, range.name));
        }
        field.values |= *bits;
    }
    constexpr unsigned kSecondSunday = 7;
    if (index == kWeekday && has(field.values, kSecondSunday)) {
        field.values |= 1U;
    }
    return field;
}

Result<CronSchedule> CronSchedule::parse(std::string_view text) {
    std::string written = lower_case(text);
    const auto macro = std::ranges::find(kMacros, written, &decltype(kMacros)::value_type::first);
    if (macro != kMacros.end()) {
        written = macro->second;
    }
    std::vector<std::string_view> parts = split(written, ' ');
    std::erase(parts, "");
    CronSchedule schedule;
    if (parts.size() != schedule.fields_.size()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "a schedule has five fields: minute, hour, day of the month, month, day of the week");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        STOKER_TRY(schedule.fields_.at(i), parse_field(parts[i], i));
    }
    return schedule;
}

bool CronSchedule::has_day(sys_days day) const {
    const std::chrono::year_month_day date{day};
    const bool in_month = has(fields_[kDay].values, static_cast<unsigned>(date.day()));
    const bool in_week = has(fields_[kWeekday].values, std::chrono::weekday{day}.c_encoding());
    const bool either = !fields_[kDay].any && !fields_[kWeekday].any;
    return has(fields_[kMonth].values, static_cast<unsigned>(date.month())) &&
           (either ? in_month || in_week : in_month && in_week);
}

std::optional<minutes> CronSchedule::first_in_day(minutes from) const {
    constexpr unsigned kHours = 24;
    constexpr unsigned kMinutes = 60;
    const auto begin = static_cast<unsigned>(from.count());
    for (unsigned hour = begin / kMinutes; hour < kHours; ++hour) {
        if (!has(fields_[kHour].values, hour)) {
            continue;
        }
        for (unsigned minute = hour == begin / kMinutes ? begin % kMinutes : 0; minute < kMinutes;
             ++minute) {
            if (has(fields_[kMinute].values, minute)) {
                return minutes{hour * kMinutes + minute};
            }
        }
    }
    return std::nullopt;
}

std::optional<WallTime> CronSchedule::next(WallTime after) const {
    // 29 February is at most eight years away.
    constexpr days kFurthest{9 * 366};
    const auto first = std::chrono::floor<minutes>(after) + minutes{1};
    const sys_days today = std::chrono::floor<days>(first);
    for (sys_days day = today; day < today + kFurthest; day += days{1}) {
        if (!has_day(day)) {
            continue;
        }
        if (const auto at = first_in_day(day == today ? first - day : minutes{})) {
            return WallTime{day + *at};
        }
    }
    return std::nullopt;
}

}  // namespace stoker::control
