#include "operator/core/spec/cron.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/api/time_format.h"

namespace stoker::control {
namespace {

std::string next(const std::string& schedule, const std::string& after) {
    const Result<CronSchedule> parsed = CronSchedule::parse(schedule);
    if (!parsed) {
        return parsed.error().message;
    }
    const std::optional<WallTime> time = parsed->next(*parse_time(after));
    return time ? format_time(*time) : "never";
}

struct Row {
    std::string schedule;
    std::string after;
    std::string next;
};

TEST(CronSchedule, FindsTheNextTime) {
    const std::vector<Row> rows = {
        {"0 2 * * *", "2026-11-27T01:59:59Z", "2026-11-27T02:00:00Z"},
        {"0 2 * * *", "2026-11-27T02:00:00Z", "2026-11-28T02:00:00Z"},
        {"*/15 * * * *", "2026-11-27T23:46:00Z", "2026-11-28T00:00:00Z"},
        {"5-59/20 * * * *", "2026-11-27T00:05:00Z", "2026-11-27T00:25:00Z"},
        {"10/20 8 * * *", "2026-11-27T08:10:00Z", "2026-11-27T08:30:00Z"},
        {"0 22 * * 1-5", "2026-11-27T22:00:00Z", "2026-11-30T22:00:00Z"},
        {"0 22 * * MON-FRI", "2026-11-27T22:00:00Z", "2026-11-30T22:00:00Z"},
        {"0 0 1 jan,jul *", "2026-11-27T00:00:00Z", "2027-01-01T00:00:00Z"},
        {"0 0 * * 0", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z"},
        {"0 0 * * 7", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z"},
        {"0 0 * * MON/2", "2026-11-27T00:00:00Z", "2026-11-30T00:00:00Z"},
        {"0 0 * * 3/4", "2026-11-27T00:00:00Z", "2026-12-02T00:00:00Z"},
        {"0 0 * * */7", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z"},
        {"0 0 * * 7/2", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z"},
        {"0 0 31 * *", "2026-11-27T00:00:00Z", "2026-12-31T00:00:00Z"},
        {"0 0 29 2 *", "2026-11-27T00:00:00Z", "2028-02-29T00:00:00Z"},
        {"0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
        {"0 0 30 2 *", "2026-11-27T00:00:00Z", "never"},
        {"  0  2 * *  * ", "2026-11-27T00:00:00Z", "2026-11-27T02:00:00Z"},
        {"@hourly", "2026-11-27T00:30:00Z", "2026-11-27T01:00:00Z"},
        {"@daily", "2026-11-27T00:30:00Z", "2026-11-28T00:00:00Z"},
        {"@weekly", "2026-11-27T00:30:00Z", "2026-11-29T00:00:00Z"},
        {"@monthly", "2026-11-27T00:30:00Z", "2026-12-01T00:00:00Z"},
        {"@yearly", "2026-11-27T00:30:00Z", "2027-01-01T00:00:00Z"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(next(row.schedule, row.after), row.next) << row.schedule;
    }
}

TEST(CronSchedule, EitherDaySufficesIfBothAreRestricted) {
    EXPECT_EQ(next("0 0 13 * 5", "2026-11-27T00:00:00Z"), "2026-12-04T00:00:00Z");
    EXPECT_EQ(next("0 0 13 * 5", "2026-12-12T00:00:00Z"), "2026-12-13T00:00:00Z");
    EXPECT_EQ(next("0 0 */2 * 5", "2026-11-28T00:00:00Z"), "2026-12-11T00:00:00Z")
        << "a field that begins with * restricts nothing by itself";
}

TEST(CronSchedule, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(
        next("60 * * * *", "2026-11-27T00:00:00Z"), "'60' is not a valid minute of a schedule");
    EXPECT_EQ(next("* 24 * * *", "2026-11-27T00:00:00Z"), "'24' is not a valid hour of a schedule");
    EXPECT_EQ(
        next("* * 0 * *", "2026-11-27T00:00:00Z"),
        "'0' is not a valid day of the month of a schedule");
    EXPECT_EQ(
        next("* * * foo *", "2026-11-27T00:00:00Z"), "'foo' is not a valid month of a schedule");
    EXPECT_EQ(
        next("* * * * 8", "2026-11-27T00:00:00Z"),
        "'8' is not a valid day of the week of a schedule");
}

TEST(CronSchedule, IsRefused) {
    for (const std::string text :
         {"",
          "* * * *",
          "* * * * * *",
          "@reboot",
          "5-1 * * * *",
          "*/0 * * * *",
          "1, * * * *",
          "-1 * * * *",
          "1- * * * *",
          "1/ * * * *",
          "+1 * * * *",
          "99999999999 * * * *"}) {
        EXPECT_FALSE(CronSchedule::parse(text)) << text;
    }
    EXPECT_TRUE(CronSchedule::parse("*/4294967295 * * * *"));
}

}  // namespace
}  // namespace stoker::control
