// Electors, events and the order of start and stop over real HTTP. Times are short to keep the test
// fast; their proportions are the real ones.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/kube/rest_transport.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/leader_elector.h"
#include "operator/runtime/supervisor.h"
#include "tests/support/api_server/server.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ApiServer;
using test::ApiServerModel;
using test::eventually;
using test::Fault;

const ObjectKey kLease{"stoker-system", "stoker-operator"};
const LeaseTiming kQuick{milliseconds{1500}, milliseconds{1000}, milliseconds{200}};
const LeaseTiming kLong{seconds{300}, seconds{200}, milliseconds{200}};

AccessConfig config_of(const ApiServer& server) {
    AccessConfig config;
    config.server = server.url();
    return config;
}

class Candidate {
public:
    Candidate(ApiServer& server, const std::string& identity, LeaseTiming timing = kQuick)
        : access_(config_of(server), read_file, clock_),
          transport_(access_, {"stoker-test lease", mib(1), 1}, clock_),
          elector_(
              transport_, {kLease, identity, timing}, clock_, std::hash<std::string>{}(identity)) {}

    void start() {
        thread_ = std::jthread([this](const std::stop_token& stop) {
            end_ = elector_.run(stop, [this] { ++times_led_; });
            ended_ = true;
        });
    }

    void stop() {
        thread_.request_stop();
        thread_.join();
    }

    // Returns false if it did not get the lease.
    [[nodiscard]] bool lead() {
        start();
        return eventually([this] { return elector_.may_write(); });
    }

    // Like lead(), but keeps the lease: the caller must release it.
    [[nodiscard]] bool lead_and_stop() {
        const bool led = lead();
        stop();
        return led;
    }

    LeaderElector& elector() { return elector_; }

    [[nodiscard]] bool ended_by_loss() const { return ended_ && end_ == LeaderElector::End::kLost; }

    [[nodiscard]] int times_led() const { return times_led_; }

private:
    SystemClock clock_;
    AccessSource access_;
    RestTransport transport_;
    LeaderElector elector_;
    std::atomic<int> times_led_{0};
    std::atomic<bool> ended_{false};
    std::atomic<LeaderElector::End> end_{LeaderElector::End::kStopped};
    std::jthread thread_;
};

// Adds a fault, chosen by the caller, to every request about a Lease until the faults are
// cleared.
Fault lease_fault() {
    Fault fault;
    fault.target_contains = "/leases";
    fault.times = -1;
    return fault;
}

std::string holder(ApiServer& server) {
    return server.with_model([](ApiServerModel& model) {
        const auto lease = model.find(kinds::kLeases, kLease);
        return lease ? read_lease(*lease).holder : std::string();
    });
}

TEST(KubeLeader, OneOfThreeLeadsAndCleanStopHandsOverAtOnce) {
    ApiServer server;
    std::vector<std::unique_ptr<Candidate>> candidates;
    for (int i = 0; i < 3; ++i) {
        candidates.push_back(std::make_unique<Candidate>(server, fmt::format("c{}", i)));
        candidates.back()->start();
    }
    const auto leaders = [&] {
        int count = 0;
        for (const auto& candidate : candidates) {
            count += candidate->elector().may_write() ? 1 : 0;
        }
        return count;
    };
    ASSERT_TRUE(eventually([&] { return leaders() == 1; }));
    const SystemClock clock;
    for (int round = 0; round < 2; ++round) {
        for (auto at = candidates.begin(); at != candidates.end(); ++at) {
            if ((*at)->elector().leads()) {
                (*at)->stop();
                const TimePoint released = clock.now();
                (*at)->elector().release(clock.now() + seconds{10});
                candidates.erase(at);
                ASSERT_TRUE(eventually([&] { return leaders() == 1; }));
                EXPECT_LT(clock.now() - released, kQuick.lease)
                    << "nobody had to wait for the lease to run out";
                break;
            }
        }
    }
    EXPECT_EQ(candidates.size(), 1U);
    server.with_model([](ApiServerModel& model) {
        EXPECT_EQ(read_lease(*model.find(kinds::kLeases, kLease)).transitions, 2)
            << "one for each holder after the first";
    });
}

TEST(KubeLeader, LeaderWithoutServerStopsWritingAndAnotherTakesOver) {
    ApiServer server;
    Candidate first(server, "first");
    ASSERT_TRUE(first.lead());
    Fault fault = lease_fault();
    fault.hang_up = true;
    server.add_fault(fault);
    ASSERT_TRUE(eventually([&] { return first.ended_by_loss(); }));
    EXPECT_FALSE(first.elector().may_write());
    server.clear_faults();
    Candidate second(server, "second");
    ASSERT_TRUE(second.lead());
    EXPECT_EQ(holder(server), "second");
    EXPECT_FALSE(first.elector().may_write());
    second.stop();
}

TEST(KubeLeader, SlowResponsesDoNotLoseTheLease) {
    ApiServer server;
    Candidate candidate(server, "slow");
    ASSERT_TRUE(candidate.lead());
    Fault fault = lease_fault();
    fault.delay = milliseconds{300};
    server.add_fault(fault);
    const auto before = server.count("PUT", "/leases");
    ASSERT_TRUE(eventually([&] { return server.count("PUT", "/leases") >= before + 5; }));
    EXPECT_TRUE(candidate.elector().may_write());
    EXPECT_EQ(candidate.times_led(), 1);
    candidate.stop();
}

TEST(KubeLeader, ReleaseDoesNotRetryAfter401Or403Or404) {
    for (const int status : {401, 403, 404}) {
        ApiServer server;
        Candidate candidate(server, "me", kLong);
        ASSERT_TRUE(candidate.lead_and_stop());
        Fault fault = lease_fault();
        fault.status = status;
        server.add_fault(fault);
        const auto before = server.count("GET", "/leases");
        candidate.elector().release(SystemClock{}.now() + std::chrono::hours{1});
        EXPECT_EQ(server.count("GET", "/leases"), before + 1) << status;
    }
}

TEST(KubeLeader, ReleaseRetriesAfterErrorAndConflict) {
    ApiServer server;
    Candidate candidate(server, "me", kLong);
    ASSERT_TRUE(candidate.lead_and_stop());
    for (const int status : {500, 409}) {
        Fault fault;
        fault.method = "PUT";
        fault.status = status;
        server.add_fault(fault);
    }
    candidate.elector().release(SystemClock{}.now() + std::chrono::hours{1});
    EXPECT_EQ(holder(server), "");
}

TEST(KubeLeader, ReleaseStopsWhenTheLeaseHasExpired) {
    ApiServer server;
    Candidate candidate(server, "me");
    ASSERT_TRUE(candidate.lead_and_stop());
    Fault fault = lease_fault();
    fault.status = 503;
    server.add_fault(fault);
    // An hour, longer than the test's own time limit.
    candidate.elector().release(SystemClock{}.now() + std::chrono::hours{1});
    EXPECT_EQ(holder(server), "me");
}

TEST(KubeEvents, AreCreatedFoldedAndRecreatedAfterDeletion) {
    ApiServer server;
    const SystemClock clock;
    AccessSource access(config_of(server), read_file, clock);
    RestTransport transport(access, {"stoker-test events", mib(1), 1}, clock);
    EventRecorderOptions options;
    options.reporter = {"stoker.dev/operator", "pod-0"};
    options.retry_pause = milliseconds{5};
    EventRecorder recorder(transport, options, clock, 1);
    std::jthread writer([&](const std::stop_token& stop) { recorder.run(stop); });
    EventNote note;
    note.regarding = {"stoker.dev/v1alpha1", "TrainingJob", {"demo", "mnist"}, "u1", "1"};
    note.reason = "Started";
    note.action = "Start";
    note.note = "attempt 1";
    Fault fault;
    fault.method = "POST";
    fault.status = 503;
    fault.times = 3;
    server.add_fault(fault);
    recorder.record(note);
    const auto events = [&] {
        return server.with_model([](ApiServerModel& model) { return model.all(kinds::kEvents); });
    };
    ASSERT_TRUE(eventually([&] { return events().size() == 1; })) << "tried until it was taken";
    const auto first = *events().begin();
    EXPECT_EQ(string_at(first.second.value(), {"reportingInstance"}), "pod-0");
    EXPECT_EQ(find_at(first.second.value(), {"series"}), nullptr);
    server.erase(kinds::kEvents, first.first);
    for (int i = 0; i < 100; ++i) {
        recorder.record(note);
    }
    ASSERT_TRUE(eventually([&] { return events().size() == 1; })) << "made anew";
    writer.request_stop();
    writer.join();
    EXPECT_EQ(recorder.dropped(), 0U);
    EXPECT_LE(server.count("PATCH", "/events/"), 2U) << "a hundred events are a few writes";
}

TEST(KubeEvents, FullQueueDropsAndCounts) {
    ApiServer server;
    const SystemClock clock;
    AccessSource access(config_of(server), read_file, clock);
    RestTransport transport(access, {"stoker-test events", mib(1), 1}, clock);
    EventRecorderOptions options;
    options.queue_max = 10;
    EventRecorder recorder(transport, options, clock, 1);
    for (int i = 0; i < 25; ++i) {
        recorder.record({});
    }
    EXPECT_EQ(recorder.dropped(), 15U);
}

// Records starts and stops in order.
class Diary {
public:
    void add(const std::string& line) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(line);
    }

    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

class SupervisorTest : public ::testing::Test {
protected:
    Supervisor::Loop loop(const std::string& name) {
        return [this, name](const std::stop_token& stop) {
            diary.add("+" + name);
            eventually([&] { return stop.stop_requested(); });
            diary.add("-" + name);
        };
    }

    Supervisor make(SupervisorOptions options = {}) {
        return Supervisor(
            [](const std::string&, std::function<void(std::stop_token)> body) {
                return std::jthread(std::move(body));
            },
            clock,
            options);
    }

    void fill(Supervisor& supervisor) {
        supervisor.add_service(
            {"probes",
             [this]() -> Status {
                 diary.add("+probes");
                 return {};
             },
             [this] { diary.add("-probes"); }});
        supervisor.add_cache("cache", loop("cache"), [this] { return synced.load(); });
        supervisor.add_worker("worker", loop("worker"), 1);
        supervisor.add_drain([this](TimePoint) { diary.add("drain"); });
        supervisor.set_event_writer(loop("events"));
    }

    bool wrote(const std::string& line) {
        const auto lines = diary.lines();
        return std::find(lines.begin(), lines.end(), line) != lines.end();
    }

    SystemClock clock;
    Diary diary;
    std::atomic<bool> synced{false};
    std::stop_source stopping;
};

TEST_F(SupervisorTest, StartsAndStopsInOrderAndReleasesTheLeaseLast) {
    ApiServer server;
    AccessSource access(config_of(server), read_file, clock);
    RestTransport transport(access, {"stoker-test lease", mib(1), 1}, clock);
    LeaderElector elector(transport, {kLease, "me", kQuick}, clock, 1);
    auto supervisor = make();
    fill(supervisor);
    supervisor.set_elector(elector, [] { FAIL() << "the lease was never lost"; });
    std::jthread runner(
        [&] { EXPECT_EQ(supervisor.run(stopping.get_token()), Supervisor::End::kStopped); });
    ASSERT_TRUE(eventually([&] { return wrote("+cache"); }));
    EXPECT_FALSE(wrote("+worker")) << "not before the caches have synced";
    synced = true;
    ASSERT_TRUE(eventually([&] { return wrote("+worker"); }));
    EXPECT_EQ(holder(server), "me");
    stopping.request_stop();
    runner.join();
    EXPECT_EQ(holder(server), "");
    auto lines = diary.lines();
    lines.erase(
        std::find(lines.begin(), lines.end(), "+events"));  // concurrent with the first others
    EXPECT_EQ(
        lines,
        (std::vector<std::string>{
            "+probes", "+cache", "+worker", "drain", "-worker", "-cache", "-probes", "-events"}));
}

TEST_F(SupervisorTest, CacheSyncTimeoutIsFatal) {
    SupervisorOptions options;
    options.cache_sync_limit = milliseconds{50};
    auto supervisor = make(options);
    fill(supervisor);
    EXPECT_EQ(supervisor.run(stopping.get_token()), Supervisor::End::kCachesNotSynced);
    EXPECT_FALSE(wrote("+worker"));
    EXPECT_TRUE(wrote("-probes"));
}

TEST_F(SupervisorTest, LostLeaseEndsTheSupervisorAtOnce) {
    ApiServer server;
    AccessSource access(config_of(server), read_file, clock);
    RestTransport transport(access, {"stoker-test lease", mib(1), 1}, clock);
    LeaderElector elector(transport, {kLease, "me", kQuick}, clock, 1);
    auto supervisor = make();
    fill(supervisor);
    synced = true;
    std::atomic<bool> told{false};
    supervisor.set_elector(elector, [&] { told = true; });
    std::jthread thief([&] {
        eventually([&] { return wrote("+worker"); });
        server.merge(kinds::kLeases, kLease, R"({"spec":{"holderIdentity":"thief"}})");
    });
    EXPECT_EQ(supervisor.run(stopping.get_token()), Supervisor::End::kLeadershipLost);
    EXPECT_TRUE(told);
    EXPECT_EQ(holder(server), "thief");
}

}  // namespace
}  // namespace stoker::control
