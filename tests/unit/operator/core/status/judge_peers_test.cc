#include "operator/core/status/judge_peers.h"

#include <gtest/gtest.h>

#include "operator/core/status/summarize_dataset.h"
#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// Two nodes share samples; ten attempts of the first to connect failed.
DatasetView make_peers_view() {
    DatasetView view;
    view.dataset = make_dataset();
    view.users = {use_of(make_running_view())};
    view.nodes = {"n1", "n2"};
    for (const int rank : {0, 1}) {
        view.reports.push_back(make_report(make_running_view(), rank, 100));
    }
    view.peers =
        PeerGroup{"uid-imagenet", 7, {{"n1", "10.0.0.1:7331", 1}, {"n2", "10.0.0.2:7331", 1}}};
    view.reports[0].datasets[0].peer_failures = 10;
    view.reports[0].datasets[0].peer_connect_failures = 10;
    DatasetReport& second = view.reports[1].datasets[0];
    second.peer_bytes_read = mib(5);
    second.peer_samples = 50;
    second.peer_hedges = 2;
    second.peer_failures = 3;
    return view;
}

const Condition* peers_of(const DatasetStatus& status) {
    return find_condition(status.conditions, "PeersReachable");
}

TEST(JudgePeers, SumsTheTrafficBetweenNodes) {
    DatasetView view = make_peers_view();
    EXPECT_EQ(
        summarize_dataset(view, moment(101)).peers,
        (DatasetPeersStatus{2, count_of(mib(5)), 50, 2, 13}));
    view.peers->reads.emplace();
    EXPECT_EQ(summarize_dataset(view, moment(101)).peers->placement, SamplePlacement::kClairvoyant);
    view.peers->members.pop_back();
    EXPECT_EQ(summarize_dataset(view, moment(101)).peers, std::nullopt) << "a group of one";
}

TEST(JudgePeers, NamesTheNodesThatReachNoPeer) {
    DatasetView view = make_peers_view();
    const DatasetStatus status = summarize_dataset(view, moment(101));
    ASSERT_NE(peers_of(status), nullptr);
    EXPECT_EQ(peers_of(status)->status, ConditionStatus::kFalse);
    EXPECT_EQ(peers_of(status)->reason, "PeersUnreachable");
    EXPECT_EQ(
        peers_of(status)->message,
        "These nodes cannot connect to the other nodes: n1. They read all samples from the origin. "
        "Pods of the Dataset's namespace must reach each other on TCP port 7331: allow it in the "
        "namespace's NetworkPolicies, or set spec.peers to Off.");
}

TEST(JudgePeers, PeersAreReachableAfterOneSampleOrFewFailures) {
    DatasetView view = make_peers_view();
    view.reports[0].datasets[0].peer_samples = 1;
    EXPECT_EQ(peers_of(summarize_dataset(view, moment(101)))->reason, "Reachable");
    view.reports[0].datasets[0].peer_samples = 0;
    view.reports[0].datasets[0].peer_connect_failures = 9;
    EXPECT_EQ(peers_of(summarize_dataset(view, moment(101)))->reason, "Reachable");
    view.dataset.status = summarize_dataset(view, moment(101));
    view.peers->members.pop_back();
    EXPECT_EQ(peers_of(summarize_dataset(view, moment(101))), nullptr) << "a group of one";
}

// While nodes restart, peers refuse requests and samples change their owner.
TEST(JudgePeers, RefusedSamplesDoNotMakePeersUnreachable) {
    DatasetView view = make_peers_view();
    view.reports[0].datasets[0].peer_failures = 1000;
    view.reports[0].datasets[0].peer_connect_failures = 0;
    EXPECT_EQ(peers_of(summarize_dataset(view, moment(101)))->reason, "Reachable");
}

}  // namespace
}  // namespace stoker::control
