#include "operator/core/view/peer_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/operator/core/make_filler.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUid = "uid-imagenet";

TimePoint at(int second) {
    return TimePoint{seconds{second}};
}

// The report of a rank whose sidecar leads on its node and accepts peers.
SidecarReport leader_report(const JobUse& use, std::size_t rank, std::uint64_t generation = 1) {
    TrainingJobView view;
    view.job = use.job;
    view.datasets = use.datasets;
    SidecarReport report = make_report(view, static_cast<std::int64_t>(rank), 100);
    report.attached = true;
    report.namespace_name = use.job->meta.ns;
    report.training_job = use.job->meta.name;
    report.training_job_uid = use.job->meta.uid;
    report.pod = use.pods.at(rank)->meta.name;
    report.node = use.pods.at(rank)->node_name;
    report.datasets[0].leader = true;
    report.datasets[0].peer_address = "10.0.0." + std::to_string(rank + 1) + ":7331";
    report.datasets[0].peer_generation = generation;
    return report;
}

// A job with a leader on n1 and one on n2.
ClusterView make_peers() {
    ClusterView cluster = make_cluster();
    cluster.reports = {leader_report(cluster.jobs[0], 0), leader_report(cluster.jobs[0], 1)};
    return cluster;
}

std::vector<std::string> nodes_of(const PeerGroup& group) {
    std::vector<std::string> nodes;
    for (const PeerMember& member : group.members) {
        nodes.push_back(member.node);
    }
    return nodes;
}

TEST(FindPeers, FindsTheLeadersWithAnAddress) {
    ClusterView cluster = make_peers();
    PeerView view = find_peers(cluster);
    ASSERT_EQ(view.datasets.at(kUid).leaders.size(), 2U);
    EXPECT_EQ(
        view.datasets.at(kUid).leaders[1],
        (PeerLeader{cluster.jobs[0].pods[1]->meta.key(), {"n2", "10.0.0.2:7331", 1}, true}));
    cluster.reports[0].datasets[0].leader = false;
    cluster.reports[1].datasets[0].peer_address.clear();
    EXPECT_THAT(find_peers(cluster).datasets.at(kUid).leaders, IsEmpty());
}

TEST(FindPeers, LeavesGuestsOut) {
    ClusterView cluster = make_cluster();
    cluster.datasets = {make_shared_dataset()};
    cluster.jobs = {make_guest(), make_filler_use(cluster.datasets[0])};
    cluster.reports = {leader_report(cluster.jobs[0], 0), leader_report(cluster.jobs[0], 1)};
    EXPECT_THAT(find_peers(cluster).datasets.at(kUid).leaders, IsEmpty());
    cluster.reports.push_back(leader_report(cluster.jobs[1], 0));
    const PeerView view = find_peers(cluster);
    ASSERT_EQ(view.datasets.at(kUid).leaders.size(), 1U);
    EXPECT_EQ(view.datasets.at(kUid).leaders[0].pod.ns, "data");
}

TEST(FindPeers, LeavesOutEndedPodsAndReportsOnDatasetsOfOtherJobs) {
    ClusterView cluster = make_peers();
    cluster.jobs[0].pods[0].edit().phase = PodPhase::kFailed;
    cluster.reports[1].datasets[0].dataset_uid = "uid-of-another-job";
    const PeerView view = find_peers(cluster);
    EXPECT_THAT(view.datasets.at(kUid).leaders, IsEmpty());
    EXPECT_FALSE(view.datasets.contains("uid-of-another-job"));
}

TEST(PeerUris, NameTheDatasetsOfThePodsOwnNamespace) {
    ClusterView cluster = make_cluster();
    const ObjectKey pod = cluster.jobs[0].pods[0]->meta.key();
    EXPECT_THAT(
        peer_uris_of(cluster, pod), ElementsAre("stoker://namespace/team/dataset/uid-imagenet"));
    EXPECT_THAT(peer_uris_of(cluster, {"team", "stranger"}), IsEmpty());
    EXPECT_THAT(peer_uris_of(cluster, {"other", pod.name}), IsEmpty());
}

TEST(PeerUris, NameNoDatasetOfAnotherNamespaceAndNoneThatIsNotShared) {
    ClusterView cluster = make_cluster();
    const ObjectKey pod = cluster.jobs[0].pods[0]->meta.key();
    cluster.jobs[0].datasets.edit().datasets[0].ns = "data";
    cluster.jobs[0].pods[0].edit().node_directories = {"data/uid-imagenet", "team/uid-imagenet"};
    EXPECT_THAT(peer_uris_of(cluster, pod), IsEmpty());
    cluster.jobs[0].datasets.edit().datasets[0].ns = "team";
    cluster.jobs[0].datasets.edit().datasets[0].peers = false;
    EXPECT_THAT(peer_uris_of(cluster, pod), IsEmpty());
}

TEST(PeerUris, NameOnlyDatasetsThatThePodMounts) {
    ClusterView cluster = make_cluster();
    const ObjectKey pod = cluster.jobs[0].pods[0]->meta.key();
    cluster.jobs[0].datasets.edit().datasets[0].uid = "uid-of-the-next-dataset";
    EXPECT_THAT(peer_uris_of(cluster, pod), IsEmpty());
    cluster.jobs[0].pods[0].edit().node_directories.push_back("team/uid-of-the-next-dataset");
    EXPECT_THAT(
        peer_uris_of(cluster, pod),
        ElementsAre("stoker://namespace/team/dataset/uid-of-the-next-dataset"));
}

TEST(PeerBook, GroupsTheLeadersByNode) {
    PeerBook book{100};
    EXPECT_THAT(book.observe(find_peers(make_peers()), true, at(0)), ElementsAre(kUid));
    const PeerGroup& group = book.groups().at(kUid);
    EXPECT_EQ(group.version, 100U);
    EXPECT_THAT(
        group.members,
        ElementsAre(PeerMember{"n1", "10.0.0.1:7331", 1}, PeerMember{"n2", "10.0.0.2:7331", 1}));
    EXPECT_THAT(book.observe(find_peers(make_peers()), true, at(1)), IsEmpty());
}

TEST(PeerBook, VersionRisesWithEachChange) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    book.observe(find_peers(cluster), true, at(0));
    cluster.reports[1].datasets[0].peer_generation = 2;
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(1)), ElementsAre(kUid));
    EXPECT_EQ(book.groups().at(kUid).version, 101U);
}

TEST(PeerBook, VersionExceedsThoseOfEarlierOperators) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    cluster.reports[0].datasets[0].leader = false;
    cluster.reports[0].datasets[0].peer_group_version = 7'000;
    book.observe(find_peers(cluster), true, at(0));
    EXPECT_EQ(book.groups().at(kUid).version, 7'001U);
}

TEST(FindPeers, IgnoresReportedVersionsAboveTheMaximum) {
    ClusterView cluster = make_peers();
    cluster.reports[0].datasets[0].peer_group_version = 7'001;
    cluster.reports[1].datasets[0].peer_group_version = 7'000;
    EXPECT_EQ(find_peers(cluster, 7'000).datasets.at(kUid).version, 7'000U);
    EXPECT_EQ(find_peers(cluster, 7'001).datasets.at(kUid).version, 7'001U);
}

TEST(PeerBook, AMemberLeaves30SecondsAfterItsStreamIsLost) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    book.observe(find_peers(cluster), true, at(0));
    cluster.reports[0].attached = false;
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(29)), IsEmpty());
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(30)), ElementsAre(kUid));
    EXPECT_THAT(nodes_of(book.groups().at(kUid)), ElementsAre("n2")) << "a group of one";
}

TEST(PeerBook, ARestartedLeaderStaysInTheGroup) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    book.observe(find_peers(cluster), true, at(0));
    DatasetReport& told = cluster.reports[0].datasets[0];
    told.leader = false;
    told.peer_address.clear();
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(5)), IsEmpty());
    told.leader = true;
    told.peer_address = "10.0.0.1:7331";
    told.peer_generation = 2;
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(10)), ElementsAre(kUid));
    EXPECT_EQ(book.groups().at(kUid).members[0].generation, 2U);
}

TEST(PeerBook, AMemberWithoutAPodLeavesAtOnce) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    book.observe(find_peers(cluster), true, at(0));
    cluster.jobs[0].pods.erase(cluster.jobs[0].pods.begin());
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(1)), ElementsAre(kUid));
    EXPECT_THAT(nodes_of(book.groups().at(kUid)), ElementsAre("n2"));
}

TEST(PeerBook, TheNewestLeaderOfANodeIsTheMember) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    cluster.jobs[0].pods[1].edit().node_name = "n1";
    cluster.reports[0] = leader_report(cluster.jobs[0], 0, 5);
    cluster.reports[1] = leader_report(cluster.jobs[0], 1, 6);
    for (int order = 0; order < 2; ++order) {
        book.observe(find_peers(cluster), true, at(order));
        EXPECT_THAT(
            book.groups().at(kUid).members, ElementsAre(PeerMember{"n1", "10.0.0.2:7331", 6}));
        std::swap(cluster.reports[0], cluster.reports[1]);
    }
    cluster.reports[1].attached = false;
    cluster.reports[0].datasets[0].peer_generation = 7;
    book.observe(find_peers(cluster), true, at(2));
    EXPECT_EQ(book.groups().at(kUid).members[0].generation, 7U) << "replaces a lost one at once";
}

TEST(PeerBook, KeepsThePreviousOperatorsGroupsUntilAllSidecarsHaveReported) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    cluster.reports.pop_back();
    EXPECT_THAT(book.observe(find_peers(cluster), false, at(0)), IsEmpty());
    EXPECT_THAT(book.observe(find_peers(cluster), false, at(29)), IsEmpty());
    EXPECT_THAT(book.observe(find_peers(make_peers()), true, at(29)), ElementsAre(kUid));
    EXPECT_EQ(book.groups().at(kUid).members.size(), 2U);

    PeerBook late{100};
    late.observe(find_peers(cluster), false, at(0));
    EXPECT_THAT(late.observe(find_peers(cluster), false, at(30)), ElementsAre(kUid));
}

TEST(PeerBook, TurningPeersOffEndsTheGroup) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    book.observe(find_peers(cluster), true, at(0));
    cluster.jobs[0].datasets.edit().datasets[0].peers = false;
    EXPECT_THAT(book.observe(find_peers(cluster), true, at(1)), ElementsAre(kUid));
    EXPECT_THAT(book.groups().at(kUid).members, IsEmpty());
    EXPECT_EQ(book.groups().at(kUid).version, 101U);
    cluster.jobs.clear();
    book.observe(find_peers(cluster), true, at(2));
    EXPECT_THAT(book.groups(), IsEmpty()) << "nobody uses the dataset";
}

TEST(PeerBook, TurningPeersOffEndsTheGroupOfAnEarlierOperator) {
    PeerBook book{100};
    ClusterView cluster = make_peers();
    cluster.jobs[0].datasets.edit().datasets[0].peers = false;
    PeerView view = find_peers(cluster);
    view.datasets.at(kUid).version = 500;
    EXPECT_THAT(book.observe(view, true, at(0)), ElementsAre(kUid));
    EXPECT_THAT(book.groups().at(kUid).members, IsEmpty());
    EXPECT_GT(book.groups().at(kUid).version, 500U);
    EXPECT_THAT(book.observe(view, true, at(1)), IsEmpty());
}

TEST(PeerBook, ReplacesAGroupIfSidecarsHaveOneOfAHigherVersion) {
    PeerBook book{100};
    PeerView view = find_peers(make_peers());
    book.observe(view, true, at(0));
    view.datasets.at(kUid).version = 900;
    EXPECT_THAT(book.observe(view, true, at(1)), ElementsAre(kUid));
    EXPECT_GT(book.groups().at(kUid).version, 900U);
}

// Random leaders come, detach, restart and go.
TEST(PeerBook, EachNodeHasOneMemberThatLedWithinHalfAMinute) {
    const std::uint64_t seed = stoker::test::seed();
    SCOPED_TRACE(seed);
    Prng prng{seed};
    PeerBook book{1};
    std::map<std::pair<std::string, std::uint64_t>, int> led_at;  // by node and generation
    std::uint64_t generation = 0;
    std::uint64_t version = 0;
    PeerView view;
    view.datasets["d"].shared = true;
    std::vector<PeerLeader>& leaders = view.datasets["d"].leaders;
    for (int now = 0; now < 2'000; ++now) {
        const std::string node = "n" + std::to_string(prng.below(6));
        const std::string pod = "p" + std::to_string(prng.below(9));
        switch (prng.below(5)) {
            case 0:
                view.pods.insert({"team", pod});
                leaders.push_back({{"team", pod}, {node, pod + ":1", ++generation}, true});
                break;
            case 1:
                view.pods.erase({"team", pod});
                std::erase_if(leaders, [&](const auto& it) { return it.pod.name == pod; });
                break;
            case 2:
                std::erase_if(leaders, [&](const auto& it) { return it.member.node == node; });
                break;
            case 3:
                for (PeerLeader& leader : leaders) {
                    leader.attached = leader.member.node != node;
                }
                break;
            default:
                break;
        }
        for (const PeerLeader& leader : leaders) {
            if (leader.attached) {
                led_at[{leader.member.node, leader.member.generation}] = now;
            }
        }
        const bool changed = !book.observe(view, true, at(now)).empty();
        const auto found = book.groups().find("d");
        if (found == book.groups().end()) {
            continue;
        }
        EXPECT_EQ(found->second.version > version, changed);
        version = found->second.version;
        std::set<std::string> nodes;
        for (const PeerMember& member : found->second.members) {
            EXPECT_TRUE(nodes.insert(member.node).second) << "two members on " << member.node;
            const auto led = led_at.find({member.node, member.generation});
            ASSERT_NE(led, led_at.end());
            EXPECT_LT(now - led->second, 30);
        }
    }
}

std::map<std::string, PeerGroup> group_of(const std::vector<std::string>& nodes) {
    PeerGroup group{kUid, 1, {}};
    for (const std::string& node : nodes) {
        group.members.push_back({node, "10.0.0.1:7331", 1});
    }
    return {{kUid, group}};
}

TEST(PlannedPeers, AreTheGroupsOfSeveralNodes) {
    const ClusterView cluster = make_peers();
    EXPECT_THAT(
        planned_peers(group_of({"n1", "n2"}), cluster.reports, moment(100)),
        ElementsAre(PeerNodes{kUid, {"n1", "n2"}}));
    EXPECT_THAT(planned_peers(group_of({"n1"}), cluster.reports, moment(100)), IsEmpty());
}

TEST(PlannedPeers, LeaveOutADatasetIfANodeReachesNoPeer) {
    ClusterView cluster = make_peers();
    cluster.reports[1].received_at = moment(100).steady;
    cluster.reports[1].datasets[0].peer_connect_failures = 10;
    EXPECT_THAT(planned_peers(group_of({"n1", "n2"}), cluster.reports, moment(100)), IsEmpty());
    cluster.reports[1].datasets[0].peer_samples = 1;
    EXPECT_EQ(planned_peers(group_of({"n1", "n2"}), cluster.reports, moment(100)).size(), 1U);
}

}  // namespace
}  // namespace stoker::control
