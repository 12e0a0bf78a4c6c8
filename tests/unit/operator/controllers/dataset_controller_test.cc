#include <algorithm>

#include <gtest/gtest.h>

#include "operator/controllers/dataset/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

struct DatasetControllerTest : ::testing::Test {
    DatasetControllerTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        bench.put(bench.cache.pods(), make_running_pod());
        TrainingJob job = make_running_job();
        set_condition(
            job.status.conditions,
            {"Running", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Running", ""});
        bench.put(bench.cache.training_jobs(), job);
        session = bench.attach(make_sidecar_hello());
    }

    // Reconciles, then copies the written status into the cache.
    Dataset reconcile(const ObjectKey& key = {"ml", "digits"}) {
        EXPECT_TRUE(controller.reconcile(key));
        Dataset dataset = bench.cache.datasets().store().get(key)->value;
        const auto last = std::find_if(
            bench.client.calls.rbegin(), bench.client.calls.rend(), [](const auto& call) {
                return call.verb == "apply_status";
            });
        bench.catch_up(bench.cache.filler_jobs());
        if (last != bench.client.calls.rend()) {
            const Result<Dataset> written = parse_document<Dataset>(last->body);
            EXPECT_TRUE(written);
            dataset.status = written->status;
            bench.put(bench.cache.datasets(), dataset);
            bench.catch_up(bench.cache.datasets());
        }
        return dataset;
    }

    static std::string ready(const Dataset& dataset) {
        const Condition* condition = find_condition(dataset.status.conditions, "Ready");
        return condition == nullptr
                   ? ""
                   : std::string{to_string(condition->status)} + " " + condition->reason;
    }

    test::ControllerBench bench;
    SessionId session;
    DatasetController controller{bench.parts};
};

TEST_F(DatasetControllerTest, StatusShowsTheSidecarsReports) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const Dataset dataset = reconcile();
    EXPECT_EQ(ready(dataset), "True Listed");
    EXPECT_EQ(dataset.status.cached_bytes, 60'000);
    EXPECT_EQ(dataset.status.total_bytes, 100'000);
}

TEST_F(DatasetControllerTest, ReadyIsUnknownAfterAMinuteWithoutReportsAndNumbersStay) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    const Dataset before = reconcile();
    bench.clock.advance(seconds{59});
    EXPECT_EQ(ready(reconcile()), "True Listed");
    bench.clock.advance(seconds{2});
    const Dataset after = reconcile();
    EXPECT_EQ(ready(after), "Unknown NodesSilent");
    EXPECT_EQ(after.status.cached_bytes, before.status.cached_bytes);
    EXPECT_EQ(after.status.total_bytes, before.status.total_bytes);
    EXPECT_EQ(after.status.sampled_at, before.status.sampled_at);
}

TEST_F(DatasetControllerTest, SweptBytesDisappearDespiteAFreshReport) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    ASSERT_EQ(reconcile().status.cached_bytes, 60'000);
    const std::string pool = make_nvme().meta.name;
    const auto uid = make_digits().meta.uid;
    bench.ledger.note(pool, "node-1", uid, bench.clock.wall_now() - seconds{1});
    bench.clock.advance(seconds{6});
    EXPECT_EQ(reconcile().status.cached_bytes, 60'000)
        << "its sidecar has reported since the sweep, and runs";
    bench.registry.detach(session, bench.now());
    EXPECT_EQ(reconcile().status.cached_bytes, 60'000)
        << "its sidecar has reported since the sweep";
    bench.ledger.note(pool, "node-1", uid, bench.clock.wall_now());
    bench.clock.advance(seconds{6});
    const Dataset after = reconcile();
    EXPECT_EQ(after.status.cached_bytes, 0);
    EXPECT_TRUE(after.status.placements.empty());
    EXPECT_EQ(after.status.total_bytes, 100'000) << "the size that it listed stays known";
}

// A sidecar ends, its bytes are swept, and another sidecar fills the directory again and ends. The
// report of the first one is still fresh.
TEST_F(DatasetControllerTest, BytesAfterASweepStayInTheStatus) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    ASSERT_EQ(reconcile().status.cached_bytes, 60'000);
    bench.registry.detach(session, bench.now());
    bench.clock.advance(seconds{2});
    const std::string pool = make_nvme().meta.name;
    bench.ledger.note(pool, "node-1", make_digits().meta.uid, bench.clock.wall_now());
    bench.clock.advance(seconds{6});
    ASSERT_EQ(reconcile().status.cached_bytes, 0);
    Pod second = make_running_pod();
    second.meta.name += "-second";
    bench.put(bench.cache.pods(), second);
    Hello hello = make_sidecar_hello();
    hello.pod = second.meta.name;
    const SessionId again = bench.attach(hello);
    bench.clock.advance(seconds{6});
    ASSERT_TRUE(bench.registry.report(again, make_sidecar_report(1), bench.now()));
    ASSERT_EQ(reconcile().status.cached_bytes, 60'000);
    bench.registry.detach(again, bench.now());
    bench.cache.pods().store().remove(second.meta.key(), "900", nullptr);
    bench.clock.advance(seconds{6});
    EXPECT_EQ(reconcile().status.cached_bytes, 60'000);
}

TEST_F(DatasetControllerTest, RequeuesWhileAJobUsesTheDataset) {
    const Result<Reconciled> next = controller.reconcile({"ml", "digits"});
    ASSERT_TRUE(next);
    EXPECT_LE(next->requeue_after.value_or(std::chrono::hours{1}), seconds{60});
}

// The job is a guest: the Dataset belongs to namespace "data".
struct SharedDatasetTest : DatasetControllerTest {
    SharedDatasetTest() {
        bench.put(bench.cache.datasets(), make_shared_digits());
        bench.put(bench.cache.training_jobs(), make_reading_job());
        bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    }

    Dataset look() { return reconcile({"data", "digits"}); }

    [[nodiscard]] std::vector<std::string> on_jobs() const {
        std::vector<std::string> verbs;
        for (const test::FakeApiClient::Call& call : bench.client.calls) {
            if (call.plural == "jobs") {
                verbs.push_back(call.verb);
            }
        }
        return verbs;
    }

    static std::string fillers(const Dataset& dataset) {
        const Condition* condition = find_condition(dataset.status.conditions, "FillersReady");
        return condition == nullptr ? "" : condition->reason + ": " + condition->message;
    }

    // Stores the filler's Job as the API server returns it after create().
    Job put_filler() {
        Job job = make_child_filler();
        job.meta.created_at = bench.clock.wall_now();
        bench.put(bench.cache.filler_jobs(), job);
        bench.catch_up(bench.cache.filler_jobs());
        return job;
    }
};

// A DatasetWarmup fills the Dataset on node-1, whose filler is ready and has not reported.
struct SilentFillerTest : SharedDatasetTest {
    SilentFillerTest() {
        bench.put(bench.cache.pods(), make_running_pod(""));  // the only guest is elsewhere
        bench.put(bench.cache.warmups(), warmup);
        pod = make_filler_pod(put_filler());
        bench.put(bench.cache.filler_pods(), pod);
    }

    // Looks every 10 s; returns how often the filler's Job was deleted.
    std::ptrdiff_t deletions_in(seconds time) {
        bench.client.calls.clear();
        for (seconds passed{}; passed <= time; passed += seconds{10}) {
            look();
            bench.clock.advance(seconds{10});
        }
        return std::ranges::count(on_jobs(), "remove");
    }

    DatasetWarmup warmup = make_digits_warmup();
    Pod pod;
};

TEST_F(SilentFillerTest, IsReplacedAfterFiveMinutes) {
    bench.nodes.listen(bench.clock.now());
    EXPECT_EQ(deletions_in(seconds{290}), 0);
    EXPECT_EQ(deletions_in(seconds{0}), 1);
}

TEST_F(SilentFillerTest, StaysWhileTheOperatorDoesNotListen) {
    EXPECT_EQ(deletions_in(seconds{900}), 0);
}

TEST_F(SilentFillerTest, HasFiveMinutesAfterTheOperatorsStart) {
    bench.nodes.listen(bench.clock.now());
    warmup.status.nodes[0].silent_since = bench.clock.wall_now() - std::chrono::hours{1};
    bench.put(bench.cache.warmups(), warmup);
    EXPECT_EQ(deletions_in(seconds{290}), 0);
}

TEST_F(SilentFillerTest, HasFiveMinutesFromWhenItIsReady) {
    bench.nodes.listen(bench.clock.now());
    pod.ready = false;
    bench.put(bench.cache.filler_pods(), pod);
    EXPECT_EQ(deletions_in(seconds{900}), 0) << "the filler's pod still pulls its image";
    pod.ready = true;
    bench.put(bench.cache.filler_pods(), pod);
    EXPECT_EQ(deletions_in(seconds{290}), 0);
    EXPECT_EQ(deletions_in(seconds{0}), 1);
}

TEST_F(SilentFillerTest, StaysIfItReportsBesideASilentLeader) {
    bench.nodes.listen(bench.clock.now());
    const SessionId filler = bench.attach(make_filler_hello(pod));
    Report report = make_sidecar_report(1);
    report.datasets[0].name = "digits";
    report.datasets[0].leader = false;
    for (std::uint64_t minute = 1; minute <= 10; ++minute) {
        report.sequence = minute;
        ASSERT_TRUE(bench.registry.report(filler, report, bench.now()));
        EXPECT_EQ(deletions_in(seconds{40}), 0) << "minute " << minute;
    }
    EXPECT_GT(deletions_in(seconds{400}), 0) << "the filler has stopped reporting, too";
}

TEST_F(SilentFillerTest, StaysAfterTheWarmup) {
    bench.nodes.listen(bench.clock.now());
    set_condition(
        warmup.status.conditions,
        {"Complete", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Warmed", ""});
    warmup.status.completion_time = bench.clock.wall_now();
    warmup.spec.ttl_seconds_after_finished = 3600;
    bench.put(bench.cache.warmups(), warmup);
    EXPECT_EQ(deletions_in(seconds{900}), 0);
}

TEST_F(SharedDatasetTest, CountsAuthorizedUsersOfOtherNamespaces) {
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    EXPECT_EQ(look().status.jobs, 0);
    EXPECT_TRUE(on_jobs().empty());
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    EXPECT_EQ(look().status.jobs, 1);
}

TEST_F(SharedDatasetTest, TrustsFillersButNotGuests) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    EXPECT_EQ(look().status.cached_bytes, 0);
    EXPECT_FALSE(look().status.total_bytes);
    const Pod pod = make_filler_pod(put_filler());
    bench.put(bench.cache.filler_pods(), pod);
    const SessionId filler = bench.attach(make_filler_hello(pod));
    Report report = make_sidecar_report(1);
    report.datasets[0].name = "digits";
    report.datasets[0].resident_bytes = Bytes{50'000};
    ASSERT_TRUE(bench.registry.report(filler, report, bench.now()));
    bench.clock.advance(seconds{6});
    const Dataset after = look();
    EXPECT_EQ(after.status.cached_bytes, 50'000);
    EXPECT_EQ(after.status.total_bytes, 100'000);
    EXPECT_EQ(after.status.jobs, 1) << "a filler is no job";
    EXPECT_EQ(fillers(after), "Serving: Fillers that serve the dataset: 1.");
}

TEST_F(SharedDatasetTest, CreatesAFillerOnAGuestPodsNode) {
    EXPECT_EQ(
        fillers(look()),
        "Starting: 1 of 1 fillers are not ready: node node-1: its Job is being created");
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"create"});
    EXPECT_EQ(bench.client.calls.back().key.ns, "data");
    const Result<Job> made = parse_document<Job>(bench.client.calls.back().body);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->meta.labels, make_child_filler().meta.labels);
    put_filler();
    bench.client.calls.clear();
    look();
    EXPECT_TRUE(on_jobs().empty());
}

TEST_F(SharedDatasetTest, CreatesNoFillerForOwnOrUnscheduledPods) {
    bench.put(bench.cache.pods(), make_running_pod(""));
    look();
    EXPECT_TRUE(on_jobs().empty());
}

TEST_F(SharedDatasetTest, EndOfSharingKeepsTheFillerUntilTheRunningAttemptEnds) {
    put_filler();
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    TrainingJob job = make_reading_job();
    job.status.datasets = {{"train", "d1"}};
    bench.put(bench.cache.training_jobs(), job);
    look();
    EXPECT_TRUE(on_jobs().empty());
    bench.put(bench.cache.training_jobs(), make_reading_job());
    look();
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"patch"}) << "no job reads the Dataset any more";
}

TEST_F(SharedDatasetTest, QuotesTheApiServersRefusalOfAFiller) {
    bench.client.refused = {"jobs", Error{ErrorCode::kForbidden, "exceeded quota: jobs=1"}};
    const Result<Reconciled> first = controller.reconcile({"data", "digits"});
    ASSERT_TRUE(first) << "a refusal is not retried like a failure";
    EXPECT_LE(first->requeue_after.value(), seconds{1}) << "the next round reports the refusal";
    bench.catch_up(bench.cache.datasets());
    bench.clock.advance(seconds{6});
    EXPECT_EQ(
        fillers(look()),
        "Refused: 1 of 1 fillers are not ready: node node-1: The API server refuses it: exceeded "
        "quota: jobs=1");
    EXPECT_EQ(on_jobs().size(), 1U) << "reports do not cause more creates";
    bench.client.refused.reset();
    bench.clock.advance(JobRefusals::kTryAgain);
    look();
    EXPECT_EQ(on_jobs().size(), 2U);
    EXPECT_EQ(fillers(look()).find("Refused"), std::string::npos);
}

TEST_F(SharedDatasetTest, ReportsAForeignJobWithAFillersName) {
    bench.client.refused = {"jobs", Error{ErrorCode::kAlreadyExists, "there already"}};
    EXPECT_EQ(fillers(look()).find("Refused"), std::string::npos);
    bench.clock.advance(JobRefusals::kTryAgain);
    look();
    bench.clock.advance(seconds{6});
    EXPECT_NE(fillers(look()).find("a Job of another owner"), std::string::npos) << fillers(look());
}

TEST_F(SharedDatasetTest, RetriesAFillerAfterAFailure) {
    bench.client.refused = {"jobs", Error{ErrorCode::kUnavailable, "away"}};
    EXPECT_FALSE(controller.reconcile({"data", "digits"})) << "the queue backs off";
}

TEST_F(SharedDatasetTest, RemovesUnneededFillerAfterGraceAcrossRestarts) {
    Job job = put_filler();
    Pod pod = make_running_pod();
    pod.phase = PodPhase::kSucceeded;
    bench.put(bench.cache.pods(), pod);
    EXPECT_EQ(fillers(look()), "");
    ASSERT_EQ(on_jobs(), std::vector<std::string>{"patch"});
    const Result<ObjectMeta> patch = parse_document<ObjectMeta>(bench.client.calls.back().body);
    ASSERT_TRUE(patch);
    job.meta.annotations.insert(patch->annotations.begin(), patch->annotations.end());
    bench.put(bench.cache.filler_jobs(), job);
    bench.client.calls.clear();
    bench.clock.advance(seconds{55});
    DatasetController next{bench.parts};
    ASSERT_TRUE(next.reconcile({"data", "digits"}));
    EXPECT_TRUE(on_jobs().empty());
    bench.clock.advance(seconds{6});
    ASSERT_TRUE(next.reconcile({"data", "digits"}));
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"remove"});
    EXPECT_EQ(bench.client.calls.back().body, job.meta.uid) << "the uid of the Job that is removed";
}

TEST_F(DatasetControllerTest, IgnoresADeletedDataset) {
    EXPECT_TRUE(controller.reconcile({"ml", "gone"}));
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(DatasetControllerTest, DoesNotActBeforeTheCacheShowsItsLastWrite) {
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    ASSERT_TRUE(controller.reconcile({"ml", "digits"}));
    ASSERT_EQ(bench.client.calls.size(), 1U);
    const Result<Reconciled> next = controller.reconcile({"ml", "digits"});
    EXPECT_EQ(bench.client.calls.size(), 1U);
    EXPECT_TRUE(next->requeue_after.has_value());
}

}  // namespace
}  // namespace stoker::control
