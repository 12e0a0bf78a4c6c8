#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/grants/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct GrantsControllerTest : ::testing::Test {
    GrantsControllerTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        bench.put(bench.cache.pods(), make_running_pod());
        bench.put(bench.cache.training_jobs(), make_running_job());
        session = *bench.registry.attach(
            make_sidecar_hello(),
            {[this](const Orders& orders) {
                 sent.insert(sent.end(), orders.grants.begin(), orders.grants.end());
             },
             [] {}},
            bench.now());
    }

    // Runs a decision late enough after the last one.
    void decide() {
        bench.clock.advance(seconds{1});
        ASSERT_TRUE(controller.reconcile(GrantsController::key()));
    }

    test::ControllerBench bench;
    SessionId session;
    std::vector<Grant> sent;
    std::vector<std::string> woken;
    std::vector<EventNote> events;
    GrantsController controller{
        bench.parts,
        60,
        {[this](const ObjectKey& job) { woken.push_back("job " + job.name); },
         [this](const ObjectKey& job) { woken.push_back("profile " + job.name); },
         [this](const ObjectKey& quota) { woken.push_back("quota " + quota.name); },
         [this](const ObjectKey& pool) { woken.push_back("pool " + pool.name); },
         [this](EventNote note) { events.push_back(std::move(note)); }}};
};

TEST_F(GrantsControllerTest, SendsGrantsAndWakesAffectedObjects) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].node, "node-1");
    EXPECT_EQ(sent[0].dataset_uid, "d1");
    EXPECT_GE(sent[0].resident_bytes, Bytes{100'000});
    EXPECT_THAT(woken, ElementsAre("job mnist", "pool nvme"));
    EXPECT_EQ(bench.latest.get()->granted_in("nvme"), sent[0].resident_bytes);
}

TEST_F(GrantsControllerTest, UnchangedPlanWakesNothing) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    decide();
    woken.clear();
    sent.clear();
    decide();
    EXPECT_THAT(woken, IsEmpty());
    EXPECT_THAT(sent, IsEmpty());
}

TEST_F(GrantsControllerTest, RepeatsAGrantAfterAThirdOfItsValidity) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    sent.clear();
    bench.clock.advance(seconds{20});
    decide();
    EXPECT_EQ(sent.size(), 1U);
}

TEST_F(GrantsControllerTest, DecidesAtMostOnceASecond) {
    decide();
    bench.clock.advance(milliseconds{300});
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const Result<Reconciled> next = controller.reconcile(GrantsController::key());
    ASSERT_TRUE(next);
    EXPECT_EQ(next->requeue_after, milliseconds{700});
}

TEST_F(GrantsControllerTest, EndedJobGetsNoGrant) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    TrainingJob ended = make_running_job();
    set_condition(
        ended.status.conditions,
        {"Complete", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Complete", ""});
    bench.put(bench.cache.training_jobs(), ended);
    decide();
    EXPECT_THAT(bench.latest.get()->plan.grants, IsEmpty());
    EXPECT_EQ(bench.latest.get()->granted_in("nvme"), Bytes::zero());
}

TEST_F(GrantsControllerTest, AConnectedSidecarGetsNoGrantUntilItHasReported) {
    decide();
    EXPECT_THAT(sent, IsEmpty());
    EXPECT_EQ(bench.latest.get()->unheard, 1U);
    EXPECT_FALSE(bench.latest.get()->view.settled);
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    EXPECT_EQ(sent.size(), 1U);
    EXPECT_TRUE(bench.latest.get()->view.settled);
}

// A sidecar whose TrainingJob is deleted: it fills its grant until its pod ends.
struct DeletedJobTest : GrantsControllerTest {
    DeletedJobTest() {
        Report report = make_sidecar_report(1);
        EXPECT_TRUE(bench.registry.report(session, report, bench.now()));
        decide();
        ++report.sequence;
        report.datasets[0].granted_bytes = sent.back().resident_bytes;
        EXPECT_TRUE(bench.registry.report(session, report, bench.now()));
        bench.cache.training_jobs().store().remove({"ml", "mnist"}, "900", nullptr);
    }

    Bytes outstanding() {
        const std::vector<Holding>& holdings = bench.latest.get()->view.holdings;
        return holdings.empty() ? Bytes::zero() : holdings[0].outstanding;
    }
};

TEST_F(DeletedJobTest, GrantCountsUntilThePodIsGone) {
    decide();
    EXPECT_EQ(outstanding(), sent.back().resident_bytes);
    EXPECT_THAT(bench.latest.get()->plan.jobs, IsEmpty());
    bench.cache.pods().store().remove({"ml", "mnist-a1-0-x"}, "901", nullptr);
    decide();
    EXPECT_EQ(outstanding(), Bytes::zero());
}

TEST_F(DeletedJobTest, GrantOfAPodThatStaysCountsUntilItHasExpired) {
    decide();
    bench.clock.advance(seconds{60} + GrantBook::kSlack - seconds{2});
    decide();
    EXPECT_EQ(outstanding(), sent.back().resident_bytes);
    decide();
    EXPECT_EQ(outstanding(), Bytes::zero());
}

TEST_F(DeletedJobTest, GrantCountsBesideANewJobOfThatName) {
    TrainingJob next = make_running_job();
    next.meta.uid = "j2";
    next.spec.datasets.clear();
    bench.put(bench.cache.training_jobs(), next);
    Pod pod = make_running_pod();
    pod.meta.name = "mnist-a1-0-y";
    pod.meta.uid = "pod-2";
    bench.put(bench.cache.pods(), pod);
    decide();
    EXPECT_EQ(outstanding(), sent.back().resident_bytes);
    bench.cache.pods().store().remove({"ml", "mnist-a1-0-x"}, "901", nullptr);
    decide();
    EXPECT_EQ(outstanding(), Bytes::zero());
}

TEST_F(DeletedJobTest, ResidentBytesThatItsSidecarReportsCount) {
    Report report = make_sidecar_report(3);
    report.datasets[0].resident_bytes = Bytes{70'000};
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    decide();
    ASSERT_EQ(bench.latest.get()->view.holdings.size(), 1U);
    EXPECT_EQ(bench.latest.get()->view.holdings[0].resident, Bytes{70'000});
}

TEST_F(GrantsControllerTest, NewOperatorWaitsForPodsOfJobsDeletedBefore) {
    Pod pod = make_running_pod();
    pod.meta.name = "older-a1-0-x";
    pod.meta.labels[std::string{kJobLabel}] = "older";
    bench.put(bench.cache.pods(), pod);
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    EXPECT_FALSE(bench.latest.get()->view.settled);
    bench.cache.pods().store().remove(pod.meta.key(), "901", nullptr);
    decide();
    EXPECT_TRUE(bench.latest.get()->view.settled);
}

TEST_F(GrantsControllerTest, NewOperatorWaitsOnlyUntilGrantsOfDeletedJobsExpire) {
    Pod pod = make_running_pod();
    pod.meta.name = "older-a1-0-x";
    pod.meta.labels[std::string{kJobLabel}] = "older";
    bench.put(bench.cache.pods(), pod);
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    decide();
    bench.clock.advance(seconds{60} + GrantBook::kSlack - seconds{2});
    decide();
    EXPECT_FALSE(bench.latest.get()->view.settled);
    decide();
    EXPECT_TRUE(bench.latest.get()->view.settled);
}

// 60,000 bytes are on the node, and the pool shrinks to 10,000 per node.
TEST_F(GrantsControllerTest, EmitsEventsWhenBytesMustBeGivenBackAndWhenThatIsLate) {
    Report report = make_sidecar_report(1);
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    decide();
    const auto confirm = [&] {
        ++report.sequence;
        report.datasets[0].granted_bytes = sent.back().resident_bytes;
        ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    };
    confirm();
    CachePool small = make_nvme();
    small.spec.capacity_per_node = Bytes{10'000};
    bench.put(bench.cache.pools(), small);
    decide();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].reason, "Reclaimed");
    EXPECT_EQ(events[0].type, EventType::kNormal);
    EXPECT_EQ(events[0].regarding.key, (ObjectKey{"ml", "mnist"}));
    for (int i = 0; i < 4; ++i) {
        bench.clock.advance(seconds{10});
        confirm();
        decide();
    }
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[1].reason, "ReclaimOverdue");
    EXPECT_EQ(events[1].type, EventType::kWarning);
    EXPECT_THAT(events[1].note, ::testing::HasSubstr("mnist-a1-0-x"));
    decide();
    ASSERT_EQ(bench.latest.get()->late.size(), 1U);
    ASSERT_EQ(bench.latest.get()->view.held_back.size(), 1U);
    EXPECT_EQ(bench.latest.get()->view.held_back[0].ns, "ml");
    // The sidecar returns the bytes.
    report.datasets[0].resident_bytes = Bytes{5'000};
    confirm();
    decide();
    decide();
    EXPECT_THAT(bench.latest.get()->late, IsEmpty());
    EXPECT_THAT(bench.latest.get()->view.held_back, IsEmpty());
}

// The job is a guest of data/digits; a filler serves its node.
struct SharedGrantsTest : GrantsControllerTest {
    SharedGrantsTest() {
        bench.put(bench.cache.datasets(), make_shared_digits());
        bench.put(bench.cache.training_jobs(), make_reading_job());
        bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
        bench.put(bench.cache.filler_pods(), pod);
        filler = *bench.registry.attach(
            make_filler_hello(pod),
            {[this](const Orders& orders) {
                 to_filler.insert(to_filler.end(), orders.grants.begin(), orders.grants.end());
             },
             [] {}},
            bench.now());
    }

    static Report filler_report() {
        Report report = make_sidecar_report(1);
        report.datasets[0].name = "digits";
        return report;
    }

    Pod pod = make_filler_pod(make_child_filler());
    SessionId filler;
    std::vector<Grant> to_filler;
};

TEST_F(SharedGrantsTest, OnlyTheFillerGetsGrants) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    ASSERT_TRUE(bench.registry.report(filler, filler_report(), bench.now()));
    decide();
    ASSERT_EQ(to_filler.size(), 1U);
    EXPECT_EQ(to_filler[0].node, "node-1");
    EXPECT_EQ(to_filler[0].dataset_uid, "d1");
    EXPECT_GE(to_filler[0].resident_bytes, Bytes{100'000});
    EXPECT_THAT(sent, IsEmpty());
}

// The operator's cache is behind: it has the pod of an ended filler, and not yet that of the next.
TEST_F(SharedGrantsTest, SidecarOfAnUnknownPodGetsNoGrant) {
    bench.cache.filler_pods().store().remove(pod.meta.key(), "900", nullptr);
    Pod ended = pod;
    ended.meta.name += "-ended";
    ended.phase = PodPhase::kSucceeded;
    bench.put(bench.cache.filler_pods(), ended);
    ASSERT_TRUE(bench.registry.report(filler, filler_report(), bench.now()));
    decide();
    EXPECT_FALSE(bench.latest.get()->plan.grants.empty());
    EXPECT_THAT(to_filler, IsEmpty());
    decide();
    EXPECT_THAT(to_filler, IsEmpty());
    bench.put(bench.cache.filler_pods(), pod);
    decide();
    EXPECT_EQ(to_filler.size(), 1U);
}

TEST_F(SharedGrantsTest, WaitsForTheFillersReportNotTheGuests) {
    decide();
    EXPECT_EQ(bench.latest.get()->unheard, 1U);
    ASSERT_TRUE(bench.registry.report(filler, filler_report(), bench.now()));
    decide();
    EXPECT_EQ(bench.latest.get()->unheard, 0U);
    EXPECT_EQ(to_filler.size(), 1U);
}

TEST_F(SharedGrantsTest, WhenAFillerMustGiveBytesBackTheEventIsOnTheDataset) {
    Report report = filler_report();
    ASSERT_TRUE(bench.registry.report(filler, report, bench.now()));
    decide();
    ++report.sequence;
    report.datasets[0].granted_bytes = to_filler.back().resident_bytes;
    ASSERT_TRUE(bench.registry.report(filler, report, bench.now()));
    CachePool small = make_nvme();
    small.spec.capacity_per_node = Bytes{10'000};
    bench.put(bench.cache.pools(), small);
    decide();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].reason, "Reclaimed");
    EXPECT_EQ(events[0].regarding.kind, "Dataset");
    EXPECT_EQ(events[0].regarding.key, (ObjectKey{"data", "digits"}));
}

}  // namespace
}  // namespace stoker::control
