#include "operator/core/status/summarize_warmup.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/saturating.h"
#include "operator/api/time_format.h"
#include "operator/core/view/warmups.h"
#include "tests/unit/operator/core/make_warmup.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A warm-up of n1 and n2. Each node owns 500 samples (2 GiB) and reported at `second`.
WarmupView make_warmup_view(std::int64_t second = 100) {
    WarmupView view;
    view.warmup = make_warmup();
    view.warmup.status = {};
    view.dataset = make_dataset();
    view.pool.name = "nvme";
    view.cache_pool = make_pool();
    view.nodes = {make_node("n1"), make_node("n2")};
    view.listening_since = moment(0).steady;
    for (const int rank : {0, 1}) {
        view.reports.push_back(make_fill_report(rank, second));
    }
    return view;
}

FillProgress& fill_of(WarmupView& view, std::size_t node) {
    return *view.reports.at(node).datasets.at(0).fill;
}

void fill_all(WarmupView& view) {
    for (const std::size_t node : {0, 1}) {
        fill_of(view, node).stored_samples = 500;
        fill_of(view, node).stored_bytes = gib(2);
        fill_of(view, node).over = true;
    }
}

DatasetWarmupStatus at(WarmupView& view, std::int64_t second) {
    for (SidecarReport& report : view.reports) {
        report.received_at = moment(second).steady;
        report.received_wall = wall(second);
    }
    view.warmup.status = summarize_warmup(view, moment(second));
    return view.warmup.status;
}

std::string reason_of(const DatasetWarmupStatus& status, const std::string& type) {
    const Condition* condition = find_condition(status.conditions, type);
    return condition == nullptr
               ? ""
               : std::string{condition->status == ConditionStatus::kTrue ? "+" : "-"} +
                     condition->reason;
}

std::string message_of(const DatasetWarmupStatus& status, const std::string& type) {
    return find_condition(status.conditions, type)->message;
}

TEST(SummarizeWarmup, ChoosesNodesOnceAndCountsTheirBytes) {
    WarmupView view = make_warmup_view();
    const DatasetWarmupStatus status = at(view, 100);
    EXPECT_EQ(status.pool, "nvme");
    ASSERT_EQ(status.nodes.size(), 2U);
    EXPECT_EQ(status.nodes[0].node, "n1");
    EXPECT_EQ(status.nodes[0].state, kWarmupNodeFilling);
    EXPECT_EQ(status.total_bytes, count_of(gib(4)));
    EXPECT_EQ(status.bytes_warmed, count_of(gib(2)));
    EXPECT_EQ(status.samples_warmed, 500);
    EXPECT_EQ(status.start_time, wall(100));
    EXPECT_EQ(status.columns, (DatasetWarmupColumns{"Running", "2Gi/4Gi", "50%", "0/2"}));
    EXPECT_EQ(reason_of(status, "Running"), "+Filling");
    EXPECT_EQ(reason_of(status, "Complete"), "-InProgress");
    view.nodes.push_back(make_node("n3"));
    EXPECT_EQ(at(view, 110).nodes.size(), 2U) << "chosen once";
}

TEST(SummarizeWarmup, CompleteWhenEveryByteIsThere) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 1).stored_samples = 499;
    fill_of(view, 1).over = false;
    EXPECT_EQ(reason_of(at(view, 100), "Complete"), "-InProgress");
    fill_all(view);
    const DatasetWarmupStatus status = at(view, 110);
    EXPECT_EQ(reason_of(status, "Complete"), "+Warmed");
    EXPECT_EQ(message_of(status, "Complete"), "4Gi of 4Gi in 1000 samples on 2 nodes.");
    EXPECT_EQ(status.completion_time, wall(110));
    EXPECT_EQ(status.columns.state, "Complete");
    view.reports.clear();
    EXPECT_EQ(at(view, 500), status) << "a finished warm-up keeps its status";
}

TEST(SummarizeWarmup, CompletesWithReasonGrantFullIfAGrantStaysFull) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 1).stored_samples = 250;
    fill_of(view, 1).stored_bytes = gib(1);
    DatasetWarmupStatus status = at(view, 100);
    EXPECT_EQ(status.nodes[1].state, kWarmupNodeFull);
    EXPECT_EQ(reason_of(status, "Fits"), "-GrantFull");
    EXPECT_EQ(reason_of(status, "Complete"), "-InProgress");
    EXPECT_EQ(reason_of(at(view, 129), "Complete"), "-InProgress");
    fill_of(view, 1).over = false;
    EXPECT_EQ(reason_of(at(view, 130), "Fits"), "-Filling") << "the grant has grown";
    fill_of(view, 1).over = true;
    EXPECT_EQ(reason_of(at(view, 140), "Complete"), "-InProgress");
    status = at(view, 170);
    EXPECT_EQ(reason_of(status, "Complete"), "+GrantFull");
    EXPECT_EQ(
        message_of(status, "Complete"),
        "3Gi of 4Gi in 750 samples on 2 nodes. 1Gi do not fit the grants.");
    EXPECT_EQ(status.columns.percentage, "75%");
}

TEST(SummarizeWarmup, RefusedSamplesFailIt) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 0).stored_samples = 499;
    fill_of(view, 0).refused_samples = 1;
    view.reports[0].datasets[0].error = "404 for cat/1.jpg";
    const DatasetWarmupStatus status = at(view, 100);
    EXPECT_EQ(reason_of(status, "Failed"), "+OriginRefused");
    EXPECT_THAT(message_of(status, "Failed"), HasSubstr("1 samples are missing or changed"));
    EXPECT_THAT(message_of(status, "Failed"), HasSubstr("404 for cat/1.jpg"));
    EXPECT_EQ(status.columns.state, "Failed");
    EXPECT_EQ(reason_of(status, "Complete"), "-OriginRefused");
}

TEST(SummarizeWarmup, RefusedSamplesDoNotHideThatOthersHaveNoRoom) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 0).stored_samples = 499;
    fill_of(view, 0).refused_samples = 1;
    fill_of(view, 1).stored_samples = 250;
    fill_of(view, 1).stored_bytes = gib(1);
    EXPECT_EQ(reason_of(at(view, 100), "Fits"), "-GrantFull");
    const DatasetWarmupStatus status = at(view, 130);
    EXPECT_EQ(reason_of(status, "Complete"), "+GrantFull");
    EXPECT_THAT(message_of(status, "Complete"), HasSubstr("1 samples are missing or changed"));
}

TEST(SummarizeWarmup, NodeThatCannotFetchNowIsWaitingNotFull) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 0).stored_samples = 400;
    fill_of(view, 0).shut = true;
    view.reports[0].datasets[0].error = "disk full";
    const DatasetWarmupStatus status = at(view, 100);
    EXPECT_EQ(status.nodes[0].state, kWarmupNodeWaiting);
    EXPECT_EQ(status.nodes[0].message, "disk full");
    EXPECT_EQ(reason_of(at(view, 1000), "Complete"), "-InProgress");
}

TEST(SummarizeWarmup, SilentNodesAreUnknownAndKeepTheirNumbers) {
    WarmupView view = make_warmup_view();
    at(view, 100);
    view.warmup.status = summarize_warmup(view, moment(161));
    EXPECT_EQ(view.warmup.status.nodes[0].state, kWarmupNodeSilent);
    EXPECT_EQ(view.warmup.status.bytes_warmed, count_of(gib(2)));
    EXPECT_EQ(reason_of(view.warmup.status, "Complete"), "-InProgress");
    EXPECT_EQ(view.warmup.status.sampled_at, wall(100));
}

TEST(SummarizeWarmup, TellsWhichNodesAreSilentAndSinceWhen) {
    WarmupView view = make_warmup_view();
    EXPECT_EQ(reason_of(at(view, 100), "Reporting"), "+AllNodes");
    view.reports.pop_back();
    EXPECT_EQ(reason_of(at(view, 170), "Reporting"), "-NodesSilent");
    EXPECT_EQ(view.warmup.status.nodes[1].silent_since, wall(110))
        << "the last report's age, at least";
    EXPECT_THAT(
        view.warmup.status.nodes[1].message,
        HasSubstr("no leading sidecar has reported since " + format_time(wall(110))));
    view.reports.push_back(make_fill_report(1, 180));
    EXPECT_EQ(reason_of(at(view, 180), "Reporting"), "+AllNodes");
    EXPECT_EQ(view.warmup.status.nodes[1].silent_since, std::nullopt);
}

TEST(SummarizeWarmup, NodeThatNeverReportsIsToldAfterAMinute) {
    WarmupView view = make_warmup_view();
    view.reports.pop_back();
    EXPECT_EQ(reason_of(at(view, 100), "Reporting"), "-Starting");
    EXPECT_EQ(reason_of(at(view, 159), "Reporting"), "-Starting");
    EXPECT_EQ(reason_of(at(view, 160), "Reporting"), "-NodesSilent");
    EXPECT_EQ(view.warmup.status.nodes[1].state, kWarmupNodeWaiting);
}

TEST(SummarizeWarmup, FailsWithoutSilentNodesOnceTheOthersHaveEnded) {
    WarmupView view = make_warmup_view();
    view.reports.pop_back();
    at(view, 100);
    fill_of(view, 0).stored_samples = 500;
    EXPECT_EQ(reason_of(at(view, 699), "Failed"), "");
    WarmupView returned = view;
    DatasetWarmupStatus status = at(view, 700);
    EXPECT_EQ(status.nodes[1].state, kWarmupNodeLost);
    EXPECT_EQ(reason_of(status, "Failed"), "+NodesSilent");
    EXPECT_THAT(
        message_of(status, "Failed"), HasSubstr("Node n2: no leading sidecar has reported since"));
    returned.reports.push_back(make_fill_report(1, 700));
    EXPECT_EQ(reason_of(at(returned, 700), "Failed"), "") << "the node's sidecar reports again";
}

TEST(SummarizeWarmup, LostNodeEndsNothingWhileAnotherFills) {
    WarmupView view = make_warmup_view();
    view.reports.pop_back();
    at(view, 100);
    EXPECT_EQ(at(view, 800).nodes[1].state, kWarmupNodeLost);
    EXPECT_EQ(reason_of(view.warmup.status, "Failed"), "");
    view.reports.push_back(make_fill_report(1, 900));
    EXPECT_EQ(at(view, 900).nodes[1].state, kWarmupNodeFilling);
}

TEST(SummarizeWarmup, NewOperatorDoesNotCountSilenceBeforeItsTime) {
    WarmupView view = make_warmup_view();
    view.reports.pop_back();
    at(view, 100);
    view.listening_since = moment(990).steady;
    EXPECT_EQ(reason_of(at(view, 1000), "Reporting"), "-Starting");
    EXPECT_EQ(reason_of(at(view, 1050), "Reporting"), "-NodesSilent");
    EXPECT_EQ(view.warmup.status.nodes[1].state, kWarmupNodeWaiting);
    EXPECT_EQ(at(view, 1590).nodes[1].state, kWarmupNodeLost);
}

TEST(SummarizeWarmup, TellsThatJobsNeedTheOrigin) {
    WarmupView view = make_warmup_view();
    view.jobs_use_origin = true;
    EXPECT_EQ(at(view, 100).nodes[0].message, "jobs use all of the pool's originBandwidth");
}

TEST(SummarizeWarmup, NodeIsGoneWithoutItsNodeOrItsPool) {
    const auto state_of = [](const std::function<void(WarmupView&)>& change) {
        WarmupView view = make_warmup_view();
        at(view, 1000);
        change(view);
        const DatasetWarmupStatus status = at(view, 1010);
        return std::string{status.nodes.at(1).state} + " " + status.nodes[1].message;
    };
    EXPECT_EQ(
        state_of([](WarmupView& view) { view.nodes.pop_back(); }),
        "Gone is not in the cluster any more");
    EXPECT_EQ(
        state_of([](WarmupView& view) {
            view.cache_pool->spec.node_selector = {{"disk", "nvme"}};
            view.nodes[0].meta.labels = view.cache_pool->spec.node_selector;
        }),
        "Gone is not in CachePool nvme any more");
    EXPECT_EQ(
        state_of([](WarmupView& view) { view.cache_pool.reset(); }),
        "Gone CachePool nvme is deleted");
    EXPECT_EQ(
        state_of([](WarmupView& view) { view.cache_pool->meta.deleting_since = wall(1001); }),
        "Gone CachePool nvme is deleted");
    const auto not_ready_since = [&](std::int64_t second) {
        return state_of([&](WarmupView& view) {
            view.nodes[1].ready = false;
            view.nodes[1].not_ready_since = wall(second);
        });
    };
    EXPECT_EQ(not_ready_since(410), "Gone has not been ready for 10 minutes");
    EXPECT_EQ(not_ready_since(411), "Filling ");
}

TEST(SummarizeWarmup, GoneNodesFailItWhenTheOthersHaveEnded) {
    WarmupView view = make_warmup_view();
    at(view, 100);
    view.nodes.pop_back();
    EXPECT_EQ(reason_of(at(view, 110), "Complete"), "-InProgress");
    fill_all(view);
    WarmupView returned = view;
    returned.nodes.push_back(make_node("n2"));
    EXPECT_EQ(reason_of(at(returned, 120), "Complete"), "+Warmed");
    const DatasetWarmupStatus status = at(view, 120);
    EXPECT_EQ(reason_of(status, "Failed"), "+NodesGone");
    EXPECT_THAT(
        message_of(status, "Failed"), HasSubstr("Node n2: is not in the cluster any more."));
    EXPECT_EQ(status.columns.nodes, "1/2");
}

TEST(SummarizeWarmup, SaysWhatItWaitsFor) {
    WarmupView view = make_warmup_view();
    view.warmup.spec.suspend = true;
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-Suspended");
    EXPECT_EQ(view.warmup.status.columns.state, "Suspended");
    view = make_warmup_view();
    view.dataset.reset();
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-DatasetNotFound");
    view = make_warmup_view();
    view.cache_pool.reset();
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-NoPool");
    view = make_warmup_view();
    view.nodes.clear();
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-NoNodes");
    view = make_warmup_view();
    view.nodes[0].ready = view.nodes[1].ready = false;
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-NoNodes");
    view = make_warmup_view();
    view.warmup.spec.nodes.names = {"n1"};
    view.warmup.spec.nodes.count = 1;
    EXPECT_EQ(reason_of(at(view, 100), "Running"), "-Invalid");
    view = make_warmup_view();
    view.reports[0].datasets[0].fill.reset();
    view.reports[0].datasets[0].manifest_state = ManifestState::kListing;
    view.reports[0].datasets[0].objects_listed = 7;
    EXPECT_EQ(at(view, 100).nodes[0].message, "lists the origin, 7 objects so far");
}

TEST(SummarizeWarmup, ResumesWithItsNodes) {
    WarmupView view = make_warmup_view();
    at(view, 100);
    view.warmup.spec.suspend = true;
    EXPECT_EQ(at(view, 200).start_time, std::nullopt);
    EXPECT_EQ(view.warmup.status.nodes.size(), 2U);
    view.warmup.spec.suspend = false;
    EXPECT_EQ(at(view, 300).start_time, wall(300));
    EXPECT_EQ(view.warmup.status.columns.state, "Running");
}

TEST(SummarizeWarmup, DoesNotEndWhileRoomMayCome) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 1).stored_samples = 250;
    EXPECT_EQ(reason_of(at(view, 100), "Fits"), "-GrantFull");
    view.room_may_come = true;
    EXPECT_EQ(reason_of(at(view, 130), "Fits"), "-RoomMayCome");
    EXPECT_EQ(reason_of(view.warmup.status, "Complete"), "-InProgress");
    view.room_may_come = false;
    EXPECT_EQ(reason_of(at(view, 170), "Complete"), "-InProgress") << "grants follow later";
    EXPECT_EQ(reason_of(at(view, 200), "Complete"), "+GrantFull");
}

TEST(SummarizeWarmup, WaitsForLargerGrantsAgainAfterASuspension) {
    WarmupView view = make_warmup_view();
    fill_all(view);
    fill_of(view, 1).stored_samples = 250;
    EXPECT_EQ(reason_of(at(view, 100), "Fits"), "-GrantFull");
    view.warmup.spec.suspend = true;
    EXPECT_EQ(reason_of(at(view, 110), "Fits"), "-Suspended");
    view.warmup.spec.suspend = false;
    EXPECT_EQ(reason_of(at(view, 500), "Complete"), "-InProgress");
    EXPECT_EQ(reason_of(at(view, 530), "Complete"), "+GrantFull");
}

TEST(SummarizeWarmup, ReportsHowManySamplesOtherNodesOwn) {
    WarmupView view = make_warmup_view();
    view.nodes = {make_node("n1")};
    fill_all(view);
    EXPECT_THAT(
        message_of(at(view, 100), "Complete"), HasSubstr("500 samples belong to other nodes"));
}

}  // namespace
}  // namespace stoker::control
