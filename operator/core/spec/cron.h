#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace stoker::control {

// A cron schedule in UTC: "minute hour day-of-month month day-of-week". A field is a list of *, N, N-M,
// */STEP or N-M/STEP; months and days of the week may be names (jan, mon), and Sunday is 0 or 7. If
// day of month and day of week are both restricted, one that matches suffices. Also @hourly,
// @daily, @midnight, @weekly, @monthly, @yearly and @annually. Pure, thread-safe.
class CronSchedule {
public:
    // kInvalidArgument: says which field is wrong.
    static Result<CronSchedule> parse(std::string_view text);

    // The first time after `after`, in whole minutes; nullopt: there is none (30 February).
    [[nodiscard]] std::optional<WallTime> next(WallTime after) const;

private:
    struct Field {
        std::uint64_t values = 0;  // one bit for each value that matches
        bool any = false;          // begins with *
    };

    static Result<Field> parse_field(std::string_view text, std::size_t index);
    [[nodiscard]] bool has_day(std::chrono::sys_days day) const;
    [[nodiscard]] std::optional<std::chrono::minutes> first_in_day(std::chrono::minutes from) const;

    std::array<Field, 5> fields_;
};

}  // namespace stoker::control
