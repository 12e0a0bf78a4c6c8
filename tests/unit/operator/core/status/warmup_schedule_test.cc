#include "operator/core/status/warmup_schedule.h"

#include <string>

#include <gtest/gtest.h>

#include "operator/api/time_format.h"
#include "operator/core/spec/validate.h"
#include "operator/core/status/summarize_warmup.h"
#include "operator/core/view/warmups.h"

namespace stoker::control {
namespace {

WallTime at(const std::string& time) {
    return *parse_time("2026-11-" + time + ":00Z");
}

std::string text_of(const std::optional<WallTime>& time) {
    return time ? format_time(*time).substr(8, 8) : "never";
}

// Created on 27 November at noon; runs at 02:00.
DatasetWarmup make_nightly() {
    DatasetWarmup warmup;
    warmup.meta.ns = "ml";
    warmup.meta.name = "nightly";
    warmup.meta.created_at = at("27T12:00");
    warmup.spec.dataset_ref = "imagenet";
    warmup.spec.schedule = "0 2 * * *";
    return warmup;
}

DatasetWarmup make_run(DatasetWarmup warmup, bool has_ended) {
    warmup.status.observed_generation = 1;
    warmup.status.last_schedule_time = at("28T02:00");
    warmup.status.next_schedule_time = at("29T02:00");
    warmup.status.nodes.emplace_back().node = "n1";
    warmup.status.bytes_warmed = 7;
    if (has_ended) {
        warmup.status.completion_time = at("28T03:00");
        warmup.status.conditions = {
            {std::string{kWarmupComplete}, ConditionStatus::kTrue, 1, {}, "Warmed", ""}};
    }
    return warmup;
}

std::string last_after(const DatasetWarmup& warmup, const std::string& now) {
    return text_of(follow_schedule(warmup, at(now)).status.last_schedule_time);
}

TEST(WarmupSchedule, BeginsAtTheFirstTimeAfterTheCreation) {
    EXPECT_EQ(last_after(make_nightly(), "27T12:00"), "never");
    EXPECT_EQ(last_after(make_nightly(), "28T01:59"), "never");
    EXPECT_EQ(last_after(make_nightly(), "28T02:00"), "28T02:00");
    EXPECT_TRUE(is_before_first_run(make_nightly()));
    EXPECT_FALSE(is_before_first_run(follow_schedule(make_nightly(), at("28T02:00"))));
}

TEST(WarmupSchedule, KeepsARunUntilTheNextTime) {
    const DatasetWarmup ended = make_run(make_nightly(), true);
    const DatasetWarmup between = follow_schedule(ended, at("29T01:59"));
    EXPECT_TRUE(is_finished(between));
    EXPECT_EQ(between.status.bytes_warmed, 7);
    EXPECT_EQ(text_of(between.status.next_schedule_time), "29T02:00");
    const DatasetWarmup again = follow_schedule(ended, at("29T02:00"));
    EXPECT_FALSE(is_finished(again));
    EXPECT_TRUE(again.status.nodes.empty());
    EXPECT_EQ(again.status.bytes_warmed, 0);
    EXPECT_FALSE(again.status.completion_time);
    EXPECT_EQ(text_of(again.status.next_schedule_time), "30T02:00");
}

TEST(WarmupSchedule, CountsMissedTimesOnce) {
    const DatasetWarmup late = follow_schedule(make_run(make_nightly(), true), at("30T12:00"));
    EXPECT_EQ(text_of(late.status.last_schedule_time), "30T12:00");
    EXPECT_EQ(text_of(late.status.next_schedule_time), "01T02:00");
    EXPECT_EQ(last_after(make_nightly(), "30T12:00"), "30T12:00") << "no operator saw it before";
}

TEST(WarmupSchedule, WaitsForARunThatGoesOn) {
    const DatasetWarmup running = make_run(make_nightly(), false);
    EXPECT_EQ(last_after(running, "29T02:00"), "28T02:00");
    EXPECT_EQ(follow_schedule(running, at("29T02:00")).status.bytes_warmed, 7);
    EXPECT_EQ(
        text_of(follow_schedule(running, at("29T02:30")).status.next_schedule_time), "29T02:00");
    EXPECT_EQ(last_after(make_run(make_nightly(), true), "29T02:30"), "29T02:30")
        << "the run has ended since";
}

TEST(WarmupSchedule, BeginsNothingWhileItIsSuspended) {
    DatasetWarmup warmup = make_run(make_nightly(), true);
    warmup.spec.suspend = true;
    EXPECT_EQ(last_after(warmup, "30T12:00"), "28T02:00");
    warmup.spec.suspend = false;
    EXPECT_EQ(last_after(warmup, "30T12:00"), "30T12:00");
}

TEST(WarmupSchedule, BeginsNothingWhenTheScheduleIsChanged) {
    DatasetWarmup changed = make_run(make_nightly(), true);
    changed.spec.schedule = "0 3 * * *";
    const DatasetWarmup after = follow_schedule(changed, at("29T12:00"));
    EXPECT_EQ(text_of(after.status.last_schedule_time), "28T02:00");
    EXPECT_EQ(text_of(after.status.next_schedule_time), "30T03:00");
    changed.spec.schedule = "0 1,2 * * *";
    EXPECT_EQ(
        text_of(follow_schedule(changed, at("28T12:00")).status.next_schedule_time), "29T01:00")
        << "a time that was added";
}

TEST(WarmupSchedule, BeginsNothingWhenAScheduleIsAdded) {
    DatasetWarmup ended = make_run(make_nightly(), true);
    ended.status.last_schedule_time.reset();
    ended.status.next_schedule_time.reset();
    const DatasetWarmup after = follow_schedule(ended, at("30T12:00"));
    EXPECT_TRUE(is_finished(after));
    EXPECT_EQ(text_of(after.status.last_schedule_time), "never");
    EXPECT_EQ(text_of(after.status.next_schedule_time), "01T02:00");
}

// A leader whose clock was a year ahead has begun a run.
TEST(WarmupSchedule, GoesOnAfterAWrongClock) {
    DatasetWarmup warmup = make_run(make_nightly(), true);
    warmup.status.last_schedule_time = at("28T02:00") + std::chrono::years{1};
    warmup.status.next_schedule_time = at("29T02:00") + std::chrono::years{1};
    warmup = follow_schedule(warmup, at("28T12:00"));
    EXPECT_EQ(text_of(warmup.status.next_schedule_time), "29T02:00");
    EXPECT_EQ(last_after(warmup, "29T02:00"), "29T02:00");
}

TEST(WarmupSchedule, LeavesOthersAlone) {
    DatasetWarmup once = make_run(make_nightly(), true);
    once.spec.schedule.clear();
    once.status.last_schedule_time.reset();
    once.status.next_schedule_time.reset();
    EXPECT_EQ(follow_schedule(once, at("30T12:00")), once);
    once.spec.schedule = "every day";
    EXPECT_EQ(follow_schedule(once, at("30T12:00")), once);
    EXPECT_FALSE(validate(once).empty());
    once.spec.schedule = "0 0 30 2 *";
    EXPECT_EQ(follow_schedule(once, at("30T12:00")), once) << "30 February";
}

// "<status> <reason>" of the condition Scheduled; empty: it has none.
std::string scheduled(const DatasetWarmup& warmup) {
    WarmupView view;
    view.warmup = follow_schedule(warmup, at("28T12:00"));
    const DatasetWarmupStatus status = summarize_warmup(view, {{}, at("28T12:00")});
    EXPECT_TRUE(is_true(status.conditions, std::string{kWarmupComplete}))
        << "the finished run's status stays";
    const Condition* condition = find_condition(status.conditions, kWarmupScheduled);
    return condition == nullptr
               ? ""
               : std::string{to_string(condition->status)} + " " + condition->reason;
}

TEST(WarmupSchedule, AnEndedWarmupTellsThatNoRunFollows) {
    DatasetWarmup ended = make_run(make_nightly(), true);
    EXPECT_EQ(scheduled(ended), "True Scheduled");
    ended.spec.suspend = true;
    EXPECT_EQ(scheduled(ended), "False Suspended");
    ended.spec.suspend = false;
    ended.spec.schedule = "60 2 * * *";
    EXPECT_EQ(scheduled(ended), "False Invalid");
    ended.spec.schedule = "0 0 30 2 *";
    EXPECT_EQ(scheduled(ended), "False NoTime");
    ended.spec.schedule.clear();
    ended.status.conditions.push_back({kWarmupScheduled, ConditionStatus::kTrue, 1, {}, "", ""});
    EXPECT_EQ(scheduled(ended), "");
}

TEST(WarmupSchedule, StatusTellsTheFirstTime) {
    WarmupView view;
    view.warmup = follow_schedule(make_nightly(), at("27T12:00"));
    const DatasetWarmupStatus status = summarize_warmup(view, {{}, at("27T12:00")});
    EXPECT_EQ(status.columns.state, "Scheduled");
    const Condition* running = find_condition(status.conditions, "Running");
    ASSERT_NE(running, nullptr);
    EXPECT_EQ(running->message, "The first run begins at 2026-11-28T02:00:00Z.");
}

}  // namespace
}  // namespace stoker::control
