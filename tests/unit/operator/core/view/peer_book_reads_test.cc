#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/view/peer_book.h"
#include "tests/unit/operator/core/make_clairvoyant.h"
#include "tests/unit/operator/core/make_filler.h"

// Which groups place their samples by the reads of a job.
namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using Rule = Placing::Rule;

constexpr const char* kUid = "uid-imagenet";

SidecarReport leader_report(const TrainingJobView& view, std::int64_t rank) {
    SidecarReport report = make_report(view, rank, 100);
    report.datasets[0].peer_address = "10.0.0." + std::to_string(rank + 1) + ":7331";
    report.datasets[0].peer_generation = static_cast<std::uint64_t>(view.job.status.attempt);
    return report;
}

// The only job of the cluster has placement Clairvoyant, and leads on its nodes.
ClusterView make_peers(const TrainingJobView& view) {
    ClusterView cluster = make_cluster();
    cluster.jobs = {use_of(view)};
    cluster.reports = {leader_report(view, 0), leader_report(view, 1)};
    return cluster;
}

// A job of the same Dataset with placement Hash.
JobUse make_second_job() {
    JobUse use = use_of(make_running_view());
    use.job.edit().meta.name = "second";
    use.job.edit().meta.uid = "uid-second";
    for (auto& pod : use.pods) {
        pod.edit().meta.name = "second-" + pod->meta.name;
    }
    return use;
}

struct PeerBookReads : ::testing::Test {
    // Whether the dataset's group changed.
    bool observe() {
        return !book.observe(find_peers(cluster), true, TimePoint{std::chrono::seconds{++now}})
                    .empty();
    }

    const std::optional<KnownReads>& reads() { return book.groups().at(kUid).reads; }

    Placing placing() { return book.placings().at(kUid); }

    // The leader has the present group, and says that its ranks read otherwise.
    void differ(SidecarReport& report) {
        report.datasets[0].reads_differ = true;
        report.datasets[0].peer_group_version = book.groups().at(kUid).version;
    }

    TrainingJobView view = make_clairvoyant_view();
    ClusterView cluster = make_peers(view);
    PeerBook book{100};
    int now = 0;
};

TEST_F(PeerBookReads, TheOnlyReaderPlacesItsSamples) {
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), make_reads());
    EXPECT_FALSE(observe());
    cluster.jobs[0] = use_of(make_running_view());
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt) << "placement Hash";
    EXPECT_EQ(book.groups().at(kUid).version, 101U);
}

TEST_F(PeerBookReads, TheHashPlacesUntilTheNodeOfEachPodIsAMember) {
    cluster.reports[1].datasets[0].leader = false;
    observe();
    EXPECT_EQ(reads(), std::nullopt);
    cluster.jobs.push_back(make_filler_use(make_dataset()));
    cluster.jobs[1].pods[0].edit().node_name = "n3";
    SidecarReport filler = make_filler_report(make_dataset(), 100);
    filler.node = "n3";
    filler.datasets[0].peer_address = "10.0.0.3:7331";
    filler.datasets[0].peer_generation = 1;
    cluster.reports.push_back(filler);
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt) << "two members, one of them without a rank";
    cluster.reports[1].datasets[0].leader = true;
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), make_reads()) << "a filler reads nothing";
    EXPECT_EQ(book.groups().at(kUid).members.size(), 3U);
}

TEST_F(PeerBookReads, OneNodeAlonePlacesByTheHash) {
    for (auto& pod : cluster.jobs[0].pods) {
        pod.edit().node_name = "n1";
    }
    cluster.reports.pop_back();
    observe();
    EXPECT_EQ(reads(), std::nullopt);
    EXPECT_EQ(placing().rule, Rule::kOneNode);
}

TEST_F(PeerBookReads, ASecondReaderEndsThemForTenMinutes) {
    observe();
    EXPECT_EQ(placing(), (Placing{Rule::kReads, "uid-resnet"}));
    cluster.jobs.push_back(make_second_job());
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt);
    EXPECT_EQ(placing().rule, Rule::kOtherReader);
    const int ended = now;
    cluster.jobs.pop_back();
    EXPECT_FALSE(observe());
    now = ended + 598;
    EXPECT_FALSE(observe());
    EXPECT_EQ(placing().rule, Rule::kOtherReader);
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), make_reads());
}

TEST_F(PeerBookReads, AReaderThatEndsBeforeTheyBeginDelaysNothing) {
    cluster.jobs.push_back(make_second_job());
    observe();
    EXPECT_EQ(reads(), std::nullopt);
    cluster.jobs[1].job.edit().status.conditions = {
        {"Complete", ConditionStatus::kTrue, 0, {}, "", ""}};
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), make_reads());
}

TEST_F(PeerBookReads, AGuestIsAReader) {
    JobUse guest = make_second_job();
    guest.job.edit().meta.ns = "guests";
    for (auto& pod : guest.pods) {
        pod.edit().meta.ns = "guests";
    }
    cluster.jobs.push_back(guest);
    observe();
    EXPECT_EQ(reads(), std::nullopt);
}

TEST_F(PeerBookReads, AJobWithoutAPodOnANodeIsNoReader) {
    JobUse waits = make_second_job();
    for (auto& pod : waits.pods) {
        pod.edit().node_name.clear();
    }
    cluster.jobs.push_back(waits);
    observe();
    EXPECT_EQ(reads(), make_reads());
}

TEST_F(PeerBookReads, AJobThatNamesTheDatasetTwiceReadsInAnUnknownOrder) {
    ResolvedDatasets& datasets = cluster.jobs[0].datasets.edit();
    datasets.datasets.push_back(datasets.datasets[0]);
    datasets.datasets[1].name = "again";
    observe();
    EXPECT_EQ(reads(), std::nullopt);
}

TEST_F(PeerBookReads, AReportOfOtherReadsEndsThemForTheAttempt) {
    observe();
    differ(cluster.reports[1]);
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt);
    EXPECT_EQ(placing(), (Placing{Rule::kRefuted, "uid-resnet"}));
    cluster.reports[1].datasets[0].reads_differ = false;
    EXPECT_FALSE(observe()) << "the sidecar was restarted";
}

TEST_F(PeerBookReads, AFillerThatLeadsIsBelieved) {
    cluster.jobs.push_back(make_filler_use(make_dataset()));
    SidecarReport filler = make_filler_report(make_dataset(), 100);
    filler.datasets[0].peer_address = "10.0.0.9:7331";
    filler.datasets[0].peer_generation = 9;
    cluster.reports[0].datasets[0].leader = false;
    cluster.reports.push_back(filler);
    observe();
    EXPECT_EQ(reads(), make_reads()) << "the filler leads on n1";
    differ(cluster.reports[2]);
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt);
}

TEST_F(PeerBookReads, WhatWasSaidOfEarlierReadsDoesNotCount) {
    observe();
    differ(cluster.reports[1]);
    cluster.jobs[0].pods[0].edit().node_name = "n2";
    cluster.jobs[0].pods[1].edit().node_name = "n1";
    cluster.reports[1].datasets[0].peer_group_version -= 1;
    EXPECT_TRUE(observe());
    EXPECT_THAT(reads()->rank_members, ElementsAre(1, 1, 0, 0));
    cluster.reports[1].datasets[0].peer_group_version += 1;
    EXPECT_FALSE(observe()) << "the leader does not have the group of these reads yet";
}

TEST_F(PeerBookReads, ASidecarThatIsNoMemberIsNotBelieved) {
    observe();
    SidecarReport older = cluster.reports[1];
    older.datasets[0].peer_generation = 0;
    differ(older);
    cluster.reports.push_back(older);
    EXPECT_FALSE(observe());
    EXPECT_EQ(reads(), make_reads());
}

TEST_F(PeerBookReads, OtherReadsAreRememberedByTheStatus) {
    cluster.jobs[0].job.edit().status.conditions = {
        {"ClairvoyantPlacement", ConditionStatus::kFalse, 3, {}, "ReadsDiffer", ""}};
    observe();
    EXPECT_EQ(reads(), std::nullopt);
}

TEST_F(PeerBookReads, TheNextAttemptIsBelievedAgain) {
    observe();
    differ(cluster.reports[0]);
    observe();
    EXPECT_EQ(reads(), std::nullopt);
    const TrainingJobView next = make_clairvoyant_view(2);
    cluster.jobs = {use_of(next)};
    cluster.jobs[0].pods.emplace_back(view.pods[0]);  // of the first attempt, still there
    cluster.reports = {cluster.reports[0], leader_report(next, 0), leader_report(next, 1)};
    observe();
    EXPECT_EQ(reads(), make_reads());
}

TEST_F(PeerBookReads, TheyStayWhileAPodIsReplacedOnTheSameNodes) {
    observe();
    cluster.jobs[0].pods[1].edit().meta.deleting_since = wall(5);
    EXPECT_FALSE(observe());
    cluster.reports[0].datasets[0].peer_generation = 9;
    EXPECT_TRUE(observe()) << "another leader on n1";
    EXPECT_EQ(reads(), make_reads());
    cluster.jobs[0].job.edit().spec.suspend = true;
    EXPECT_FALSE(observe()) << "nobody reads";
}

TEST_F(PeerBookReads, ThoseOfAnOlderSpecDoNotStay) {
    observe();
    cluster.jobs[0].job.edit().spec.suspend = true;
    EXPECT_FALSE(observe());
    cluster.jobs[0].job.edit().spec.suspend = false;
    cluster.jobs[0].datasets.edit().datasets[0].clairvoyant->seed = 8;
    cluster.jobs[0].pods[1].edit().node_name.clear();
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt) << "another seed";
}

TEST_F(PeerBookReads, ThoseOfOtherwiseManyRanksDoNotStay) {
    observe();
    cluster.jobs[0].job.edit().spec.trainer.node_count = 3;
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt);
    EXPECT_EQ(placing().rule, Rule::kWaiting);
}

TEST_F(PeerBookReads, TheyEndWhenAMemberIsLost) {
    observe();
    cluster.jobs[0].pods.pop_back();
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt);
    EXPECT_EQ(book.groups().at(kUid).members.size(), 1U);
}

TEST_F(PeerBookReads, ThoseOfAnEarlierJobEndWhenAnotherOneBegins) {
    observe();
    TrainingJobView next = make_clairvoyant_view();
    next.job.meta.uid = "uid-next";
    cluster.jobs[0].job.edit().meta.deleting_since = wall(5);
    cluster.jobs.push_back(use_of(next));
    cluster.jobs[1].pods.pop_back();
    EXPECT_TRUE(observe());
    EXPECT_EQ(reads(), std::nullopt) << "not all pods of the next one have a node";
}

TEST_F(PeerBookReads, RanksThatMoveBetweenTheNodesChangeThem) {
    observe();
    cluster.jobs[0].pods[0].edit().node_name = "n2";
    cluster.jobs[0].pods[1].edit().node_name = "n1";
    EXPECT_TRUE(observe());
    EXPECT_THAT(reads()->rank_members, ElementsAre(1, 1, 0, 0));
}

}  // namespace
}  // namespace stoker::control
