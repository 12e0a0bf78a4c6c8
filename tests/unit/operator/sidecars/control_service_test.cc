#include "operator/sidecars/control_service.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/base/check.h"
#include "common/base/guarded.h"
#include "operator/certificates/authority.h"
#include "tests/support/certificates.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"
#include "tests/support/sidecar_client.h"
#include "tests/unit/operator/sidecars/fake_authenticator.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using test::eventually;
using testing::make_hello;
using testing::make_report;
using testing::SidecarClient;

const GrantReaders kReaders{{{"ml", "a"}, {"d1"}}};

struct ControlServiceTest : ::testing::Test {
    ControlServiceTest()
        : certificates(testing::make_certificates()) {
        use(certificates);
        authenticator.know("good", {"ml", "default", "a", "node-1"});
        authenticator.know("other", {"ml", "default", "b", ""});
        service = start();
    }

    // Shows this certificate to new connections.
    void use(const testing::TestCertificates& made) {
        const KeyPair leaf{made.certificate, made.key};
        *served.lock() = std::make_shared<ServedCertificate>(ServedCertificate{leaf, made.ca});
    }

    ControlServiceOptions options_on(const std::string& listen) {
        ControlServiceOptions options;
        options.listen = listen;
        options.certificate = [this] { return *served.lock(); };
        return options;
    }

    std::unique_ptr<ControlService> start() {
        ControlServiceOptions options = options_on("127.0.0.1:0");
        options.session_count_max = 8;
        auto started = ControlService::start(
            std::move(options), registry, node_programs(), authenticator, clock);
        STOKER_CHECK(started.has_value(), started.error().message.c_str());
        return *std::move(started);
    }

    NodePrograms node_programs() { return {nodes, {"stoker-system", "stoker-node"}, nullptr}; }

    std::string address() const { return "localhost:" + std::to_string(service->port()); }

    std::unique_ptr<SidecarClient> dial(const std::string& token) {
        return std::make_unique<SidecarClient>(address(), certificates.ca, token);
    }

    grpc::Status status_after_hello(const std::string& token, const v1::Hello& hello) {
        const auto client = dial(token);
        client->hello(hello);
        return client->finish();
    }

    grpc::StatusCode end_after_hello(const std::string& token, const v1::Hello& hello) {
        return status_after_hello(token, hello).error_code();
    }

    testing::TestCertificates certificates;
    Guarded<ServedCertificatePtr> served;
    testing::ManualClock clock;
    FakeAuthenticator authenticator;
    SidecarRegistry registry{{}, nullptr};
    NodeRegistry nodes{{}, nullptr, nullptr};
    std::unique_ptr<ControlService> service;
};

TEST_F(ControlServiceTest, SendsAProbeAndReceivesItsResult) {
    const auto client = dial("good");
    ASSERT_TRUE(client->hello(make_hello("ml", "a")));
    ASSERT_TRUE(eventually([&] { return registry.counts().attached == 1; }));
    registry.ask({{{"ml", registry.all()[0].training_job}, {7, 20}}});
    v1::OperatorMessage answer;
    while (!answer.has_probe()) {
        ASSERT_TRUE(client->receive(answer));
    }
    EXPECT_EQ(answer.probe().id(), 7U);
    EXPECT_EQ(answer.probe().batches(), 20U);
    v1::Report report = make_report(1, 0);
    report.mutable_job()->mutable_probe()->set_id(7);
    report.mutable_job()->mutable_probe()->set_bypassed_batches(20);
    report.mutable_job()->mutable_probe()->set_bypassed_ns(3'000);
    ASSERT_TRUE(client->report(report));
    ASSERT_TRUE(eventually([&] { return registry.all()[0].trainer.probe.id == 7; }));
    EXPECT_EQ(registry.all()[0].trainer.probe.bypassed.time, Duration{3'000});
}

TEST_F(ControlServiceTest, AnswersAHelloAtOnceAndAcceptsReports) {
    const auto client = dial("good");
    ASSERT_TRUE(client->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(client->receive(answer));
    EXPECT_EQ(answer.grants_size(), 0);
    ASSERT_TRUE(client->report(make_report(1, 500)));
    ASSERT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
    const SidecarReport report = registry.all().at(0);
    EXPECT_EQ(report.pod, "a");
    EXPECT_EQ(report.datasets.at(0).resident_bytes, Bytes{500});
    EXPECT_EQ(report.received_wall, clock.wall_now());
    EXPECT_TRUE(client->finish().ok());
    EXPECT_TRUE(eventually([&] { return registry.counts().attached == 0; }));
}

TEST_F(ControlServiceTest, SendsNewGrants) {
    const auto client = dial("good");
    ASSERT_TRUE(client->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(client->receive(answer));
    ASSERT_TRUE(client->report(make_report(1, 0)));
    ASSERT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
    registry.publish({{"node-1", "d1", mib(5), 60, 0, "Granted"}}, kReaders, clock.now());
    ASSERT_TRUE(client->receive(answer));
    ASSERT_EQ(answer.grants_size(), 1);
    EXPECT_EQ(answer.grants(0).dataset_uid(), "d1");
    EXPECT_EQ(answer.grants(0).resident_bytes(), mib(5).count());
    EXPECT_EQ(answer.grants(0).valid_seconds(), 60U);
    EXPECT_EQ(answer.grants(0).reason(), "Granted");
}

TEST_F(ControlServiceTest, ReceivesRankSketchesAndSendsJobWeights) {
    const auto client = dial("good");
    ASSERT_TRUE(client->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(client->receive(answer));
    v1::Report report = make_report(1, 0);
    v1::RankSketch& sketch = *report.mutable_datasets(0)->add_sketches();
    sketch.set_training_job_uid("j1");
    sketch.set_revision(2);
    sketch.add_masses(0.75F);
    sketch.add_masses(0.25F);
    sketch.set_volume(0.5);
    ASSERT_TRUE(client->report(report));
    ASSERT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
    const SidecarReport told = registry.all().at(0);
    EXPECT_EQ(
        told.datasets.at(0).sketches, (std::vector<RankSketch>{{"j1", 2, {0.75F, 0.25F}, 0.5}}));

    registry.publish(
        {{"node-1", "d1", mib(5), 60, 1000, "Granted", {{"j1", 0.75}, {"j2", 0}}}},
        kReaders,
        clock.now());
    ASSERT_TRUE(client->receive(answer));
    ASSERT_EQ(answer.grants(0).weights_size(), 2);
    EXPECT_EQ(answer.grants(0).weights(0).training_job_uid(), "j1");
    EXPECT_EQ(answer.grants(0).weights(0).weight(), 0.75);
    EXPECT_EQ(answer.grants(0).origin_bytes_per_second(), 1000U);
}

TEST_F(ControlServiceTest, DistinguishesWrongPodFromWrongNode) {
    v1::Hello other_node = make_hello("ml", "a");
    other_node.set_node("node-2");
    EXPECT_EQ(
        status_after_hello("good", other_node).error_message(),
        "pod ml/a runs on node node-1, not on node-2");
    EXPECT_EQ(
        status_after_hello("good", make_hello("ml", "b")).error_message(),
        "the token is of pod ml/a, not of ml/b");
}

TEST_F(ControlServiceTest, RejectsFalseIdentities) {
    struct Case {
        const char* name;
        const char* token;
        v1::Hello hello;
        grpc::StatusCode want;
    };

    v1::Hello other_node = make_hello("ml", "a");
    other_node.set_node("node-2");
    v1::Hello nameless = make_hello("ml", "a");
    nameless.clear_training_job();
    const Case cases[] = {
        {"no token", "", make_hello("ml", "a"), grpc::StatusCode::UNAUTHENTICATED},
        {"a bad token", "bad", make_hello("ml", "a"), grpc::StatusCode::UNAUTHENTICATED},
        {"nobody can tell now", "later", make_hello("ml", "a"), grpc::StatusCode::UNAVAILABLE},
        {"another namespace", "good", make_hello("hr", "a"), grpc::StatusCode::PERMISSION_DENIED},
        {"another pod", "good", make_hello("ml", "b"), grpc::StatusCode::PERMISSION_DENIED},
        {"another node", "good", other_node, grpc::StatusCode::PERMISSION_DENIED},
        {"an empty field", "good", nameless, grpc::StatusCode::INVALID_ARGUMENT},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        EXPECT_EQ(end_after_hello(c.token, c.hello), c.want);
    }
    EXPECT_EQ(registry.counts().known, 0U);
}

TEST_F(ControlServiceTest, AcceptsTheHellosNodeIfTheTokenHasNone) {
    const auto client = dial("other");
    ASSERT_TRUE(client->hello(make_hello("ml", "b")));
    v1::OperatorMessage answer;
    EXPECT_TRUE(client->receive(answer));
}

TEST_F(ControlServiceTest, RequiresOneHelloThenReports) {
    const auto hasty = dial("good");
    hasty->report(make_report(1, 0));
    EXPECT_EQ(hasty->finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

    const auto chatty = dial("good");
    chatty->hello(make_hello("ml", "a"));
    chatty->hello(make_hello("ml", "a"));
    EXPECT_EQ(chatty->finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlServiceTest, ReplayedReportIsIgnored) {
    const auto client = dial("good");
    client->hello(make_hello("ml", "a"));
    client->report(make_report(2, 500));
    client->report(make_report(1, 900));
    client->report(make_report(2, 900));
    client->report(make_report(3, 700));
    ASSERT_TRUE(eventually([&] { return registry.counts().reports == 2; }));
    EXPECT_EQ(registry.counts().reports_stale, 2U);
    EXPECT_EQ(registry.all().at(0).datasets.at(0).resident_bytes, Bytes{700});
}

TEST_F(ControlServiceTest, NewStreamOfAPodEndsTheOldOne) {
    const auto old_one = dial("good");
    ASSERT_TRUE(old_one->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(old_one->receive(answer));
    const auto new_one = dial("good");
    ASSERT_TRUE(new_one->hello(make_hello("ml", "a")));
    ASSERT_TRUE(new_one->receive(answer));
    EXPECT_FALSE(old_one->receive(answer));
    EXPECT_EQ(old_one->finish().error_code(), grpc::StatusCode::ABORTED);
    EXPECT_EQ(registry.counts().attached, 1U);
}

TEST_F(ControlServiceTest, FloodWaitsInTheSenderWhileOthersAreServed) {
    const auto flooding = dial("good");
    ASSERT_TRUE(flooding->hello(make_hello("ml", "a")));
    constexpr std::uint64_t kReports = 100'000;
    std::thread flood([&] {
        for (std::uint64_t i = 1; i <= kReports && flooding->report(make_report(i, i)); ++i) {
        }
    });
    ASSERT_TRUE(eventually([&] { return registry.counts().reports >= 5; }));
    const auto calm = dial("other");
    ASSERT_TRUE(calm->hello(make_hello("ml", "b")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(calm->receive(answer));
    ASSERT_TRUE(calm->report(make_report(1, 5)));
    ASSERT_TRUE(eventually([&] { return registry.all().at(1).sequence == 1; }));
    // Each session reads ten reports at the start, and more only after a step().
    EXPECT_LE(registry.counts().reports, 11U);
    service->step(clock.now());
    EXPECT_TRUE(eventually([&] { return registry.counts().reports >= 20; }));
    EXPECT_LE(registry.counts().reports, 31U);
    flooding->cancel();
    flood.join();
}

TEST_F(ControlServiceTest, RejectsAMessageBeyondTheLimit) {
    v1::Hello huge = make_hello("ml", "a");
    huge.set_version(std::string(300 * 1024, 'v'));
    EXPECT_EQ(end_after_hello("good", huge), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ControlServiceTest, EndsSessionsWithoutHello) {
    const auto silent = dial("good");
    ASSERT_TRUE(eventually([&] { return service->session_count() == 1; }));
    clock.advance(seconds{11});
    service->step(clock.now());
    v1::OperatorMessage answer;
    EXPECT_FALSE(silent->receive(answer));
    EXPECT_EQ(silent->finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(ControlServiceTest, LimitsTheNumberOfSessions) {
    std::vector<std::unique_ptr<SidecarClient>> crowd;
    for (int i = 0; i < 8; ++i) {
        crowd.push_back(dial("good"));
    }
    ASSERT_TRUE(eventually([&] { return service->session_count() == 8; }));
    EXPECT_EQ(
        end_after_hello("other", make_hello("ml", "b")), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ControlServiceTest, StopsWhileSidecarsAreAttachedAndTokensAreBeingChecked) {
    const auto attached = dial("good");
    ASSERT_TRUE(attached->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(attached->receive(answer));
    authenticator.hold = true;
    const auto waiting = dial("other");
    const auto held = authenticator.take_held();
    ASSERT_EQ(held.size(), 1U);

    service.reset();
    EXPECT_EQ(attached->finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(waiting->finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(registry.counts().attached, 0U);
    held[0](PodIdentity{"ml", "default", "b", ""});  // too late, so ignored

    authenticator.hold = false;
    service = start();
    EXPECT_EQ(end_after_hello("good", make_hello("ml", "a")), grpc::StatusCode::OK);
}

TEST_F(ControlServiceTest, NewLeafServesNewConnectionsAndEndsNoStream) {
    const auto living = dial("good");
    ASSERT_TRUE(living->hello(make_hello("ml", "a")));
    v1::OperatorMessage answer;
    ASSERT_TRUE(living->receive(answer));
    const testing::TestCertificates before = certificates;
    certificates = testing::make_certificates();
    use(certificates);

    EXPECT_EQ(end_after_hello("other", make_hello("ml", "b")), grpc::StatusCode::OK);
    SidecarClient distrusts(address(), before.ca, "other");
    distrusts.hello(make_hello("ml", "b"));
    EXPECT_EQ(distrusts.finish().error_code(), grpc::StatusCode::UNAVAILABLE);

    ASSERT_TRUE(living->report(make_report(1, 500)));
    EXPECT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
    EXPECT_EQ(registry.counts().attached, 1U);
    EXPECT_TRUE(living->finish().ok());
}

// Uses gRPC's own verifier, with the authority's chain during a CA rotation.
TEST_F(ControlServiceTest, SidecarsFromBeforeAndAfterARotationTrustIt) {
    const WallTime now = SystemClock{}.wall_now();
    const AuthorityTerms terms;
    const Authority old_one =
        advance_authority({}, "ca", terms, now - terms.ca_renewal * 2 - terms.overlap).value();
    const Authority both = advance_authority(old_one, "ca", terms, now - terms.overlap).value();
    const Authority new_one = advance_authority(both, "ca", terms, now).value();
    ASSERT_EQ(new_one.signing, both.next);
    const KeyPair leaf = issue_leaf(new_one, {"localhost"}, terms, now).value();
    use({trust_bundle(new_one), leaf.certificate, leaf.key});
    for (const Authority& trusted : {old_one, both, new_one}) {
        certificates.ca = trust_bundle(trusted);
        EXPECT_EQ(end_after_hello("good", make_hello("ml", "a")), grpc::StatusCode::OK);
    }
}

TEST_F(ControlServiceTest, DoesNotStartWithoutAUsableCertificate) {
    const auto attempt = [&] {
        return ControlService::start(
            options_on("127.0.0.1:0"), registry, node_programs(), authenticator, clock);
    };
    *served.lock() = nullptr;
    EXPECT_EQ(attempt().error().code, ErrorCode::kNotFound);
    testing::TestCertificates mixed = certificates;
    mixed.key = testing::make_certificates().key;
    use(mixed);
    EXPECT_EQ(attempt().error().code, ErrorCode::kCorruption);
    use(certificates);
}

TEST_F(ControlServiceTest, ReportsATakenPort) {
    const auto second = ControlService::start(
        options_on("127.0.0.1:" + std::to_string(service->port())),
        registry,
        node_programs(),
        authenticator,
        clock);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace stoker::control
