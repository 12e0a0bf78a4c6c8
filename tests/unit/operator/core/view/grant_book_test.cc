#include "operator/core/view/grant_book.h"

#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

constexpr Duration kValid = seconds{60};

TimePoint at(int second) {
    return TimePoint{seconds{second}};
}

ObservedResidency silent(const std::string& node) {
    ObservedResidency word;
    word.pool = "nvme";
    word.node = node;
    word.dataset_uid = "d";
    word.ns = "team";
    word.live = true;
    return word;
}

ObservedResidency told(const std::string& node, Bytes resident, Bytes granted) {
    ObservedResidency word = silent(node);
    word.reached = true;
    word.leader_attached = true;
    word.resident = resident;
    word.granted = granted;
    return word;
}

Grant grant(const std::string& node, Bytes bytes) {
    return {node, "d", bytes, 60, 0, "Granted"};
}

AllocationPlan plan_of(std::vector<Grant> grants) {
    AllocationPlan plan;
    plan.grants = std::move(grants);
    return plan;
}

TEST(GrantBook, HoldingsHaveTheTargetsOfTheLastPlan) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(1), gib(4))}, at(0));
    EXPECT_EQ(book.holdings().at(0).target, std::nullopt);
    AllocationPlan plan = plan_of({grant("n1", gib(2))});
    plan.targets = {{"nvme", "n1", "d", gib(6)}};
    book.take(plan);
    EXPECT_EQ(book.holdings().at(0).target, gib(6));
    book.take(plan_of({}));
    EXPECT_EQ(book.holdings().at(0).target, std::nullopt);
}

// The first plan of a new leader begins with what statuses promise, which may be several times what
// the sidecars have.
TEST(GrantBook, ANewLeaderDoesNotRememberAPlanThatItMadeWithoutReports) {
    GrantBook book{kValid};
    AllocationPlan plan = plan_of({grant("n1", gib(8))});
    plan.targets = {{"nvme", "n1", "d", gib(8)}, {"nvme", "n2", "d", gib(8)}};
    book.observe({silent("n1"), silent("n2")}, at(0));
    book.take(plan);
    book.observe({told("n1", gib(2), gib(2)), silent("n2")}, at(2));
    EXPECT_EQ(book.holdings().at(0).target, std::nullopt);
    EXPECT_EQ(book.holdings().at(0).granted, gib(2));
    book.take(plan);
    book.observe({told("n1", gib(2), gib(2)), told("n2", gib(2), gib(2))}, at(3));
    EXPECT_EQ(book.holdings().at(0).target, std::nullopt) << "n2 was only guessed";
    book.take(plan);
    EXPECT_EQ(book.holdings().at(0).target, gib(8));
    EXPECT_EQ(book.holdings().at(1).target, gib(8));
}

// Its grant has expired, but nobody knows what it holds.
TEST(GrantBook, KeepsNoTargetOfASidecarThatNeverReports) {
    GrantBook book{kValid};
    AllocationPlan plan;
    plan.targets = {{"nvme", "n1", "d", gib(8)}, {"nvme", "n2", "d", gib(8)}};
    book.observe({silent("n1"), told("n2", gib(2), gib(2))}, at(0));
    book.observe({silent("n1"), told("n2", gib(2), gib(2))}, at(80));
    book.take(plan);
    EXPECT_EQ(book.holdings().at(0).target, std::nullopt);
    EXPECT_EQ(book.holdings().at(1).target, gib(8));
}

TEST(GrantBook, IsSettledAtOnceIfNoSidecarRanBeforeTheOperator) {
    GrantBook book{kValid};
    book.observe({}, at(0));
    EXPECT_TRUE(book.is_settled(at(0)));
    // A pod that starts later can only hold this operator's grants.
    book.observe({silent("n1")}, at(11));
    EXPECT_TRUE(book.is_settled(at(11)));
    EXPECT_EQ(book.take(plan_of({grant("n1", gib(3))})).size(), 1U);
}

// Seed 80044 of tests/world: an earlier operator went on for 5 s and granted 34 GB to a new sidecar.
TEST(GrantBook, WaitsForSidecarsThatBeginWhileAnEarlierOperatorMayGoOn) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(1), gib(4))}, at(0));
    EXPECT_TRUE(book.is_settled(at(0)));
    book.observe({told("n1", gib(1), gib(4)), silent("n2")}, at(3));
    EXPECT_FALSE(book.is_settled(at(20)));
    book.observe({told("n1", gib(1), gib(4)), told("n2", gib(1), gib(9))}, at(20));
    EXPECT_TRUE(book.is_settled(at(20)));
}

TEST(GrantBook, BytesThatNoLeaderHasCountedAreUncounted) {
    GrantBook book{kValid};
    ObservedResidency opening = told("n1", gib(12), Bytes::unlimited());
    opening.opening = true;
    ObservedResidency gone = silent("n4");  // a status of an ended job
    gone.live = false;
    gone.resident = gib(5);
    book.observe({opening, told("n2", gib(5), Bytes::unlimited()), silent("n3"), gone}, at(0));
    const std::vector<Holding> holdings = book.holdings();
    ASSERT_EQ(holdings.size(), 4U);
    EXPECT_TRUE(holdings[0].uncounted);
    EXPECT_FALSE(holdings[1].uncounted) << "its leader has counted";
    EXPECT_TRUE(holdings[2].uncounted) << "its leader has yet to begin";
    EXPECT_FALSE(holdings[3].uncounted) << "no leader is to come";
}

// Seed 80328 of tests/world: a job's status showed the bytes that this operator had granted on two
// nodes, and all of them counted as an earlier operator's grant on the node without a report.
TEST(GrantBook, StatusesPromiseNothingWhereThisOperatorHasGranted) {
    GrantBook book{kValid};
    ObservedResidency word = silent("n1");
    word.live = false;  // only guests' pods are there
    book.observe({word}, at(0));
    EXPECT_EQ(book.take(plan_of({grant("n1", gib(3))})).size(), 1U);
    word.live = true;
    word.promised = gib(6);
    book.observe({word}, at(3));
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(3));
}

TEST(GrantBook, WaitsForASidecarThatMayHaveGoneToAnEarlierOperator) {
    GrantBook book{kValid};
    ObservedResidency gone = told("n1", gib(1), gib(4));
    book.observe({gone}, at(0));
    gone.leader_attached = false;
    book.observe({gone}, at(3));
    EXPECT_FALSE(book.is_settled(at(3)));
    EXPECT_TRUE(book.is_settled(at(0) + kValid + GrantBook::kSlack)) << "its grant has expired";
    book.observe({told("n1", gib(1), gib(9))}, at(12));
    EXPECT_TRUE(book.is_settled(at(12)));
    book.observe({gone}, at(13));
    EXPECT_TRUE(book.is_settled(at(13)));
}

TEST(GrantBook, WaitsForReportsOfAllSidecarsThatRanBeforeTheOperator) {
    GrantBook book{kValid};
    book.observe({silent("n1"), silent("n2")}, at(0));
    EXPECT_FALSE(book.is_settled(at(0)));
    EXPECT_EQ(book.unheard(), 2U);
    book.observe({told("n1", gib(1), gib(4)), silent("n2")}, at(2));
    EXPECT_FALSE(book.is_settled(at(2)));
    book.observe({told("n1", gib(1), gib(4)), told("n2", gib(1), gib(4))}, at(3));
    EXPECT_TRUE(book.is_settled(at(3)));
    // The sidecars hold grants of the previous operator.
    EXPECT_EQ(book.holdings().at(0).granted, gib(4));
    EXPECT_FALSE(book.holdings().at(0).in_flight);
}

TEST(GrantBook, WaitsOnlyUntilOldGrantsExpire) {
    GrantBook book{kValid};
    book.observe({silent("n1")}, at(100));
    EXPECT_FALSE(book.is_settled(at(100) + kValid));
    EXPECT_TRUE(book.is_settled(at(100) + kValid + GrantBook::kSlack));
    // The pod has ended, so the operator need not wait for its report.
    book.observe({}, at(101));
    EXPECT_TRUE(book.is_settled(at(101)));
}

TEST(GrantBook, ReservesSpaceOfASidecarWithoutAReport) {
    GrantBook book{kValid};
    ObservedResidency word = silent("n1");
    word.promised = gib(5);
    word.resident = gib(2);
    book.observe({word}, at(0));
    const Holding holding = book.holdings().at(0);
    EXPECT_EQ(holding.outstanding, gib(5));
    EXPECT_EQ(holding.granted, gib(5));
    EXPECT_TRUE(holding.in_flight);
    EXPECT_TRUE(book.take(plan_of({grant("n1", gib(1))})).empty());
    book.observe({told("n1", gib(2), gib(4))}, at(1));
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(4));
    EXPECT_EQ(book.take(plan_of({grant("n1", gib(1))})).size(), 1U);
}

TEST(GrantBook, GrantIsInFlightUntilItsSidecarEnforcesIt) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(4), gib(4))}, at(0));
    book.take(plan_of({grant("n1", gib(1))}));
    book.observe({told("n1", gib(4), gib(4))}, at(1));
    EXPECT_TRUE(book.holdings().at(0).in_flight);
    EXPECT_EQ(book.holdings().at(0).granted, gib(1));
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(4));
    book.observe({told("n1", gib(3), gib(1))}, at(2));
    EXPECT_FALSE(book.holdings().at(0).in_flight);
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(1));
    EXPECT_EQ(book.holdings().at(0).resident, gib(3));
}

TEST(GrantBook, RestartedSidecarHasNoGrantInForce) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(2), Bytes::unlimited())}, at(0));
    EXPECT_EQ(book.holdings().at(0).outstanding, Bytes::zero());
    EXPECT_EQ(book.holdings().at(0).granted, Bytes::unlimited())
        << "the sidecar keeps its present bytes";
    book.take(plan_of({grant("n1", gib(3))}));
    book.observe({told("n1", gib(2), Bytes::unlimited())}, at(1));
    EXPECT_TRUE(book.holdings().at(0).in_flight);
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(3));
}

// The sidecar's trainers wait for the listing of the origin; its disk holds the same bytes as
// before.
TEST(GrantBook, KeepsResidentBytesWhileASidecarOpensItsDirectory) {
    GrantBook book{kValid};
    ObservedResidency opening = told("n1", gib(3), Bytes::unlimited());
    opening.opening = true;
    book.observe({opening}, at(0));
    book.take(plan_of({grant("n1", gib(5))}));
    opening.granted = gib(5);
    book.observe({opening}, at(1));
    EXPECT_EQ(book.holdings().at(0).resident, gib(3)) << "the sidecar adds no bytes yet";
    book.observe({told("n1", gib(1), gib(5))}, at(2));
    EXPECT_EQ(book.holdings().at(0).resident, gib(1));
    book.observe({opening}, at(3));
    EXPECT_EQ(book.holdings().at(0).resident, gib(5))
        << "the sidecar may have filled its grant before";
    book.take(plan_of({grant("n1", gib(2))}));
    opening.granted = gib(2);
    book.observe({opening}, at(4));
    EXPECT_EQ(book.holdings().at(0).resident, gib(5))
        << "the sidecar returns bytes once it has counted them";
    book.observe({told("n1", gib(2), gib(2))}, at(5));
    EXPECT_EQ(book.holdings().at(0).resident, gib(2));
}

TEST(GrantBook, SilentSidecarKeepsItsGrant) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(4), gib(4))}, at(0));
    book.take(plan_of({grant("n1", gib(6))}));
    book.observe({silent("n1")}, at(90));
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(6));
    EXPECT_EQ(book.holdings().at(0).resident, gib(4));
    // A smaller grant cannot reach the silent sidecar: its space stays reserved.
    book.take(plan_of({grant("n1", gib(1))}));
    book.observe({silent("n1")}, at(91));
    EXPECT_EQ(book.holdings().at(0).outstanding, gib(6));
}

// The operator's writes may fail, and its watch may be late, when the last sidecar ends.
TEST(GrantBook, WithoutASidecarTheLargerOfReportAndStatusCounts) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(4), gib(4))}, at(0));
    ObservedResidency ended = silent("n1");
    ended.live = false;
    for (const auto& [status, resident] : {std::pair{1, 4}, {3, 4}, {5, 5}, {2, 5}}) {
        ended.resident = gib(status);
        book.observe({ended}, at(100));
        EXPECT_EQ(book.holdings().at(0).resident, gib(resident));
    }
    book.observe({told("n1", gib(2), gib(4))}, at(101));
    EXPECT_EQ(book.holdings().at(0).resident, gib(2)) << "a sidecar counts what is there";
}

// A leader reported 4 GiB and ended; its report goes with its pod. Then only an older report of
// another ended sidecar is left.
TEST(GrantBook, OlderReportOfAnEndedSidecarForgetsNothing) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(4), gib(4))}, at(0));
    ObservedResidency older = told("n1", gib(2), gib(4));
    older.leader_attached = false;  // a sidecar that does not lead may be attached
    book.observe({older}, at(1));
    EXPECT_EQ(book.holdings().at(0).resident, gib(4));
    older.leader_attached = true;
    book.observe({older}, at(2));
    EXPECT_EQ(book.holdings().at(0).resident, gib(2));
}

std::vector<Holding> observed(GrantBook& book, const ClusterView& cluster) {
    AllocationView view;
    book.observe(cluster, moment(100), view);
    return view.holdings;
}

TEST(GrantBook, BytesOfAnEndedSidecarCountBeforeAStatusShowsThem) {
    GrantBook book{kValid};
    ClusterView cluster = make_cluster();
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.reports[0].datasets[0].resident_bytes = gib(2);
    ASSERT_EQ(observed(book, cluster).at(0).resident, gib(2));
    cluster.reports.clear();
    cluster.jobs.clear();
    EXPECT_EQ(observed(book, cluster).at(0).resident, gib(2));
    ClusterView other = cluster;
    other.datasets.clear();
    GrantBook of_deleted_dataset = book;
    EXPECT_TRUE(observed(of_deleted_dataset, other).empty());
    other = cluster;
    other.nodes = {make_node("n2")};
    GrantBook of_lost_node = book;
    EXPECT_TRUE(observed(of_lost_node, other).empty());
    cluster.datasets[0].status.placements = {{"nvme", "n1", count_of(gib(2)), 1}};
    EXPECT_EQ(observed(book, cluster).size(), 1U);
    cluster.datasets[0].status.placements.clear();
    EXPECT_TRUE(observed(book, cluster).empty()) << "the directory has been swept";
}

// Pods of an ended job stay until it is deleted.
TEST(GrantBook, SweptBytesOfAnEndedJobAreFree) {
    GrantBook book{kValid};
    ObservedResidency ended = silent("n1");
    ended.live = false;
    ended.resident = gib(4);
    ended.in_status = true;
    book.observe({ended}, at(0));
    ASSERT_EQ(book.holdings().at(0).resident, gib(4));
    ended.resident = Bytes::zero();
    ended.in_status = false;
    book.observe({ended}, at(5));
    for (const Holding& holding : book.holdings()) {
        EXPECT_EQ(holding.resident, Bytes::zero());
    }
}

TEST(GrantBook, ForgetsGrantsOfDeletedPods) {
    GrantBook book{kValid};
    book.observe({told("n1", gib(4), gib(4))}, at(0));
    book.take(plan_of({grant("n1", gib(6))}));
    ObservedResidency gone = silent("n1");
    gone.live = false;
    gone.resident = gib(4);
    book.observe({gone}, at(90));
    const Holding holding = book.holdings().at(0);
    EXPECT_EQ(holding.resident, gib(4));
    EXPECT_EQ(holding.outstanding, Bytes::zero());
    EXPECT_FALSE(holding.in_flight);
}

}  // namespace
}  // namespace stoker::control
