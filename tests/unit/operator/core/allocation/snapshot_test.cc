#include "operator/core/allocation/snapshot.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/snapshot_fields.h"
#include "tests/unit/operator/core/allocation/random_view.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int kRounds = 500;

AllocationSnapshot snapshot_of(AllocationView view) {
    AllocationSnapshot result;
    result.version = "0.1.0";
    result.decided_at = WallTime{std::chrono::nanoseconds{1'790'000'000'123'456'789}};
    result.served_at = result.decided_at + seconds{7};
    result.plan = plan_allocation(view);
    result.view = std::move(view);
    return result;
}

template <class Check>
void for_random_snapshots(bool wild, Check check) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const AllocationSnapshot printed =
            snapshot_of(RandomView{seed + static_cast<std::uint64_t>(round)}.make(wild));
        const std::string text = print_snapshot(printed);
        const auto read = parse_snapshot(text);
        ASSERT_TRUE(read) << read.error().message << '\n' << text;
        check(printed, *read, text);
    }
}

TEST(Snapshot, ReadsBackUnchanged) {
    for_random_snapshots(false, [](const auto& printed, const auto& read, const auto&) {
        EXPECT_EQ(read.version, printed.version);
        EXPECT_EQ(read.served_at, printed.served_at);
        EXPECT_EQ(read.decided_at, printed.decided_at);
        EXPECT_EQ(read.view, printed.view);
        EXPECT_EQ(read.plan, printed.plan);
    });
}

TEST(Snapshot, ReaderPlansTheSame) {
    for_random_snapshots(true, [](const auto& printed, const auto& read, const auto& text) {
        EXPECT_EQ(plan_allocation(read.view), printed.plan);
        EXPECT_EQ(read.plan, printed.plan);
        EXPECT_EQ(print_snapshot(read), text);
    });
}

TEST(Snapshot, ComputesItsAgeByTheOperatorsClock) {
    EXPECT_EQ(parse_snapshot(print_snapshot(snapshot_of({})))->age(), seconds{7});
}

TEST(Snapshot, SpellsReasonsAsTheConditionDoes) {
    for (std::size_t i = 0; i < kTexts<AllocationReason>.size(); ++i) {
        const auto reason = static_cast<AllocationReason>(i);
        EXPECT_EQ(kTexts<AllocationReason>.at(i), to_string(reason));
    }
}

TEST(Snapshot, IgnoresFieldsOfANewerOperator) {
    const auto read = parse_snapshot(
        R"({"format": 2, "version": "9.0", "mood": "good", "view":
            {"nodes": [{"pool": "p", "node": "n", "capacity": 5, "colour": "red"}]}})");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->view.nodes, (std::vector<PoolNode>{{"p", "n", Bytes{5}}}));
    EXPECT_EQ(read->view.hysteresis, AllocationView{}.hysteresis);
}

TEST(Snapshot, RefusesAnotherFormatAndNamesBothFormats) {
    const auto read = parse_snapshot(R"({"format": 1, "version": "0.9.0", "view": []})");
    ASSERT_FALSE(read);
    EXPECT_EQ(
        read.error().message,
        "the operator (version 0.9.0) speaks format 1 of the allocation, this program format 2");
}

TEST(Snapshot, ReportsTheInvalidField) {
    const auto read = parse_snapshot(
        R"({"format": 2, "view": {"pools": [{"pool": "p", "objective": "Luck"}], "step": -1},
            "plan": {"jobs": [{"datasets": {"a": 1}}]}})");
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("view.pools[0].objective: 'Luck'"));
    EXPECT_THAT(read.error().message, HasSubstr("view.step: -1"));
    EXPECT_THAT(read.error().message, HasSubstr("plan.jobs[0].datasets: "));
    EXPECT_FALSE(parse_snapshot("only /metrics is here"));
}

}  // namespace
}  // namespace stoker::control
