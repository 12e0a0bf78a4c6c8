#include "operator/sidecars/sidecar_registry.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Moment at(Duration since_start) {
    return {TimePoint{minutes{60}} + since_start, WallTime{seconds{1769860800}} + since_start};
}

Hello hello_of(const std::string& pod, std::int32_t rank, const std::string& node) {
    Hello hello;
    hello.namespace_name = "ml";
    hello.pod = pod;
    hello.node = node;
    hello.training_job = "mnist";
    hello.training_job_uid = "j1";
    hello.rank = rank;
    hello.version = "0.1.0";
    hello.mounts = {{"train", "d1"}};
    return hello;
}

const GrantReaders kReaders{{{"ml", "a"}, {"d1"}}, {{"ml", "b"}, {"d1"}}};

Report report_of(std::uint64_t sequence, std::uint64_t hits) {
    Report report;
    report.sequence = sequence;
    DatasetReport dataset;
    dataset.name = "train";
    dataset.dataset_uid = "d1";
    dataset.hit_samples = hits;
    report.datasets = {dataset};
    return report;
}

Report report_of_leader(std::uint64_t sequence) {
    Report report = report_of(sequence, 0);
    report.datasets[0].leader = true;
    return report;
}

Grant grant_of(const std::string& node, const std::string& uid, Bytes bytes) {
    Grant grant;
    grant.node = node;
    grant.dataset_uid = uid;
    grant.resident_bytes = bytes;
    grant.valid_seconds = 60;
    grant.reason = "Granted";
    return grant;
}

// The sidecar's end of a connection: keeps what the registry sent, and counts its closes.
struct Peer {
    std::vector<Grant> grants;
    std::vector<std::uint64_t> probes;
    std::vector<std::string> pins;  // "<dataset uid> <revision>"
    std::vector<PeerGroup> groups;
    std::vector<std::string> certificates;  // chains
    int closed = 0;

    SidecarLink link() {
        return {
            [this](const Orders& sent) {
                grants.insert(grants.end(), sent.grants.begin(), sent.grants.end());
                if (sent.probe) {
                    probes.push_back(sent.probe->id);
                }
                for (const RevisionPin& pin : sent.pins) {
                    pins.push_back(pin.dataset_uid + " " + domain::to_string(pin.revision));
                }
                groups.insert(groups.end(), sent.peers.begin(), sent.peers.end());
                if (sent.peer_certificate) {
                    certificates.push_back(sent.peer_certificate->chain);
                }
            },
            [this] { ++closed; }};
    }
};

struct Fixture : ::testing::Test {
    std::vector<std::string> changes;
    SidecarRegistry registry{
        {}, [this](const ObjectKey& job, bool news) {
            changes.push_back(job.ns + "/" + job.name + (news ? "" : " (numbers)"));
        }};
    Peer peer;

    // Attaches a sidecar that leads d1 on its node.
    SessionId attach_leader(const Hello& hello, Peer& its) {
        const SessionId session = *registry.attach(hello, its.link(), at(seconds{0}));
        EXPECT_TRUE(registry.report(session, report_of_leader(1), at(seconds{0})));
        return session;
    }
};

using SidecarRegistryTest = Fixture;

TEST_F(SidecarRegistryTest, KeepsTheLastReportOfEachPodByRank) {
    Peer other;
    const SessionId one = *registry.attach(hello_of("b", 1, "node-1"), peer.link(), at(seconds{0}));
    const SessionId two =
        *registry.attach(hello_of("a", 0, "node-2"), other.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(one, report_of(1, 7), at(seconds{5})));
    ASSERT_TRUE(registry.report(two, report_of(1, 9), at(seconds{6})));

    const std::vector<SidecarReport> reports = registry.of_job({"ml", "mnist"});
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].pod, "a");
    EXPECT_EQ(reports[0].datasets[0].hit_samples, 9U);
    EXPECT_EQ(reports[0].received_at, at(seconds{6}).steady);
    EXPECT_EQ(reports[1].pod, "b");
    EXPECT_TRUE(reports[1].attached);
    EXPECT_THAT(registry.of_job({"ml", "other"}), IsEmpty());
    EXPECT_THAT(changes, ElementsAre("ml/mnist", "ml/mnist", "ml/mnist", "ml/mnist"));
}

TEST_F(SidecarRegistryTest, RequestsEachMeasurementOncePerSidecar) {
    Peer late;
    Peer stranger;
    Hello other_job = hello_of("c", 0, "node-1");
    other_job.training_job = "other";
    ASSERT_TRUE(registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0})));
    ASSERT_TRUE(registry.attach(other_job, stranger.link(), at(seconds{0})));
    registry.ask({{{"ml", "mnist"}, {7, 20}}});
    registry.ask({{{"ml", "mnist"}, {7, 20}}});
    ASSERT_TRUE(registry.attach(hello_of("b", 1, "node-1"), late.link(), at(seconds{1})));
    registry.ask({{{"ml", "mnist"}, {8, 20}}});
    registry.ask({});
    EXPECT_THAT(peer.probes, ElementsAre(7U, 8U));
    EXPECT_THAT(late.probes, ElementsAre(7U, 8U));
    EXPECT_THAT(stranger.probes, IsEmpty());
}

TEST_F(SidecarRegistryTest, IgnoresAReplayedReport) {
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(session, report_of(3, 7), at(seconds{5})));
    const Status replayed = registry.report(session, report_of(2, 9), at(seconds{6}));
    ASSERT_FALSE(replayed);
    EXPECT_EQ(replayed.error().code, ErrorCode::kAlreadyExists);
    EXPECT_EQ(registry.all()[0].datasets[0].hit_samples, 7U);
    EXPECT_EQ(registry.all()[0].received_at, at(seconds{5}).steady);
    EXPECT_EQ(registry.counts().reports_stale, 1U);
}

TEST_F(SidecarRegistryTest, RejectsDecreasingTotalsWithinASession) {
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(session, report_of(1, 7), at(seconds{5})));
    ASSERT_FALSE(registry.report(session, report_of(2, 6), at(seconds{6})));
    EXPECT_EQ(registry.all()[0].datasets[0].hit_samples, 7U);
    EXPECT_EQ(registry.counts().reports_refused, 1U);
}

TEST_F(SidecarRegistryTest, KeepsTheMassesOfASketchThatLaterReportsOnlyName) {
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    const auto report_sketch = [&](std::uint64_t sequence, RankSketch sketch) {
        Report report = report_of(sequence, 7);
        report.datasets[0].leader = true;
        report.datasets[0].sketches = {std::move(sketch)};
        return registry.report(session, std::move(report), at(seconds{5}));
    };
    ASSERT_TRUE(report_sketch(1, {"j1", 1, {0.5F, 0.5F}, 1}));
    ASSERT_TRUE(report_sketch(2, {"j1", 1, {}, 1}));
    ASSERT_TRUE(report_sketch(3, {"j1", 1, {}, 1}));
    EXPECT_THAT(
        registry.all()[0].datasets[0].sketches, ElementsAre(RankSketch{"j1", 1, {0.5F, 0.5F}, 1}));
    ASSERT_TRUE(report_sketch(4, {"j1", 2, {0.9F, 0.1F}, 1}));
    EXPECT_THAT(
        registry.all()[0].datasets[0].sketches, ElementsAre(RankSketch{"j1", 2, {0.9F, 0.1F}, 1}));
}

TEST_F(SidecarRegistryTest, SendsChangedWeightsAtOnce) {
    attach_leader(hello_of("a", 0, "node-1"), peer);
    Grant grant = grant_of("node-1", "d1", mib(5));
    grant.weights = {{"j1", 0.5}, {"j2", 0.5}};
    registry.publish({grant}, kReaders, at(seconds{1}).steady);
    grant.weights = {{"j1", 0.9}, {"j2", 0.1}};
    registry.publish({grant}, kReaders, at(seconds{2}).steady);
    ASSERT_EQ(peer.grants.size(), 2U);
    EXPECT_EQ(peer.grants[1].weights, grant.weights);
}

TEST_F(SidecarRegistryTest, RestartedSidecarRestartsItsTotals) {
    const SessionId first =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(first, report_of(40, 700), at(seconds{5})));
    Peer restarted;
    const SessionId second =
        *registry.attach(hello_of("a", 0, "node-1"), restarted.link(), at(seconds{9}));
    EXPECT_EQ(peer.closed, 1);
    // Until the new session's first report, the registry keeps the old report and its time.
    EXPECT_EQ(registry.all()[0].datasets[0].hit_samples, 700U);
    EXPECT_EQ(registry.all()[0].received_at, at(seconds{5}).steady);

    ASSERT_TRUE(registry.report(second, report_of(1, 2), at(seconds{10})));
    EXPECT_EQ(registry.all()[0].datasets[0].hit_samples, 2U);
    EXPECT_EQ(
        registry.report(first, report_of(41, 701), at(seconds{11})).error().code, ErrorCode::kGone);
    registry.detach(first, at(seconds{12}));
    EXPECT_TRUE(registry.all()[0].attached);
}

TEST_F(SidecarRegistryTest, RemembersADetachedPodForAWhile) {
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(session, report_of(1, 7), at(seconds{5})));
    registry.detach(session, at(minutes{1}));
    EXPECT_FALSE(registry.all()[0].attached);
    EXPECT_EQ(registry.all()[0].received_at, at(seconds{5}).steady);
    EXPECT_EQ(registry.counts().attached, 0U);
    registry.forget_silent(at(minutes{11}).steady);
    EXPECT_EQ(registry.all().size(), 1U);
    registry.forget_silent(at(minutes{11} + seconds{1}).steady);
    EXPECT_THAT(registry.all(), IsEmpty());
}

TEST_F(SidecarRegistryTest, LimitsTheNumberOfSidecars) {
    SidecarRegistry small({.sidecar_count_max = 1}, nullptr);
    ASSERT_TRUE(small.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0})));
    const auto refused = small.attach(hello_of("b", 1, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
    // A known pod may attach again.
    EXPECT_TRUE(small.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{1})));
}

TEST_F(SidecarRegistryTest, SendsGrantsOnlyForTheSidecarsNodeAndDatasets) {
    Peer other_node;
    attach_leader(hello_of("a", 0, "node-1"), peer);
    attach_leader(hello_of("b", 1, "node-2"), other_node);
    registry.publish(
        {grant_of("node-1", "d1", mib(5)), grant_of("node-1", "d9", mib(9))},
        kReaders,
        at(seconds{1}).steady);
    EXPECT_THAT(peer.grants, ElementsAre(grant_of("node-1", "d1", mib(5))));
    EXPECT_THAT(other_node.grants, IsEmpty());
}

TEST_F(SidecarRegistryTest, SendsNoGrantForADatasetThatTheJobDoesNotRead) {
    Peer stranger;
    Hello hello = hello_of("a", 0, "node-1");
    hello.namespace_name = "nlp";
    attach_leader(hello_of("a", 0, "node-1"), peer);
    attach_leader(hello, stranger);
    registry.publish({grant_of("node-1", "d1", mib(5))}, kReaders, at(seconds{1}).steady);
    EXPECT_EQ(peer.grants.size(), 1U);
    EXPECT_THAT(stranger.grants, IsEmpty()) << "a pod of the same name, in another namespace";
    registry.publish(
        {grant_of("node-1", "d1", mib(5))}, {{{"nlp", "a"}, {"d2"}}}, at(seconds{1}).steady);
    EXPECT_THAT(stranger.grants, IsEmpty()) << "the stranger's job reads another dataset";
    registry.publish(
        {grant_of("node-1", "d1", mib(5))}, {{{"nlp", "a"}, {"d1"}}}, at(seconds{2}).steady);
    EXPECT_EQ(stranger.grants.size(), 1U) << "the dataset was shared with the stranger";
}

TEST_F(SidecarRegistryTest, NewLeaderGetsItsGrantAtOnce) {
    registry.publish({grant_of("node-1", "d1", mib(5))}, kReaders, at(seconds{0}).steady);
    attach_leader(hello_of("a", 0, "node-1"), peer);
    EXPECT_THAT(peer.grants, ElementsAre(grant_of("node-1", "d1", mib(5))));
}

TEST_F(SidecarRegistryTest, FollowerGetsItsGrantOnceItLeads) {
    const std::vector<Grant> grants{grant_of("node-1", "d1", mib(5))};
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.report(session, report_of(1, 0), at(seconds{0})));
    registry.publish(grants, kReaders, at(seconds{0}).steady);
    EXPECT_THAT(peer.grants, IsEmpty());
    ASSERT_TRUE(registry.report(session, report_of_leader(2), at(seconds{1})));
    EXPECT_THAT(peer.grants, ElementsAre(grants[0]));
    ASSERT_TRUE(registry.report(session, report_of_leader(3), at(seconds{2})));
    EXPECT_EQ(peer.grants.size(), 1U);
}

TEST_F(SidecarRegistryTest, GrantIsSentAgainWhenASidecarLeadsAgain) {
    registry.publish({grant_of("node-1", "d1", mib(5))}, kReaders, at(seconds{0}).steady);
    const SessionId session = attach_leader(hello_of("a", 0, "node-1"), peer);
    ASSERT_TRUE(registry.report(session, report_of(2, 0), at(seconds{1})));
    ASSERT_TRUE(registry.report(session, report_of_leader(3), at(seconds{2})));
    EXPECT_EQ(peer.grants.size(), 2U);
}

// The sidecar's last report came over its previous stream.
TEST_F(SidecarRegistryTest, NewStreamGetsNoGrantBeforeItsReport) {
    attach_leader(hello_of("a", 0, "node-1"), peer);
    Peer again;
    ASSERT_TRUE(registry.attach(hello_of("a", 0, "node-1"), again.link(), at(seconds{1})));
    registry.publish({grant_of("node-1", "d1", mib(5))}, kReaders, at(seconds{1}).steady);
    EXPECT_THAT(again.grants, IsEmpty());
}

TEST_F(SidecarRegistryTest, RepeatsAGrantBeforeExpiryAndSendsChangesAtOnce) {
    attach_leader(hello_of("a", 0, "node-1"), peer);
    const std::vector<Grant> grants{grant_of("node-1", "d1", mib(5))};
    registry.publish(grants, kReaders, at(seconds{0}).steady);
    registry.publish(grants, kReaders, at(seconds{19}).steady);
    EXPECT_EQ(peer.grants.size(), 1U);
    registry.publish(grants, kReaders, at(seconds{20}).steady);
    EXPECT_EQ(peer.grants.size(), 2U);
    registry.publish({grant_of("node-1", "d1", mib(6))}, kReaders, at(seconds{21}).steady);
    ASSERT_EQ(peer.grants.size(), 3U);
    EXPECT_EQ(peer.grants[2].resident_bytes, mib(6));
}

AttemptPins pins_of(std::uint64_t revision, const std::string& prefix = "mnist-a1-") {
    return {"j1", prefix, {{"d1", domain::RevisionId{revision}, {}}}};
}

TEST_F(SidecarRegistryTest, SendsPinsOnceToCurrentAndNewSidecars) {
    const ObjectKey job{"ml", "mnist"};
    ASSERT_TRUE(registry.attach(hello_of("mnist-a1-0-x", 0, "n1"), peer.link(), at(seconds{0})));
    registry.pin(job, pins_of(0xAA));
    registry.pin(job, pins_of(0xAA));
    EXPECT_THAT(peer.pins, ElementsAre("d1 00000000000000aa"));
    Peer second;
    ASSERT_TRUE(registry.attach(hello_of("mnist-a1-1-x", 1, "n2"), second.link(), at(seconds{1})));
    EXPECT_THAT(second.pins, ElementsAre("d1 00000000000000aa"));
    registry.pin(job, pins_of(0xBB));
    EXPECT_THAT(peer.pins, ElementsAre("d1 00000000000000aa", "d1 00000000000000bb"));
    registry.pin(job, {});
    Peer third;
    ASSERT_TRUE(registry.attach(hello_of("mnist-a1-2-x", 2, "n3"), third.link(), at(seconds{2})));
    EXPECT_THAT(third.pins, IsEmpty());
}

TEST_F(SidecarRegistryTest, SendsPinsOnlyToTheirAttemptAndJob) {
    const ObjectKey job{"ml", "mnist"};
    registry.pin(job, pins_of(0xAA, "mnist-a2-"));
    ASSERT_TRUE(registry.attach(hello_of("mnist-a1-0-x", 0, "n1"), peer.link(), at(seconds{0})));
    Peer reborn;
    Hello hello = hello_of("mnist-a2-0-x", 0, "n1");
    hello.training_job_uid = "j0";
    ASSERT_TRUE(registry.attach(hello, reborn.link(), at(seconds{0})));
    EXPECT_THAT(peer.pins, IsEmpty());
    EXPECT_THAT(reborn.pins, IsEmpty());
}

TEST_F(SidecarRegistryTest, ReattachedSidecarGetsItsPins) {
    const ObjectKey job{"ml", "mnist"};
    const Hello hello = hello_of("mnist-a1-0-x", 0, "n1");
    const SessionId session = *registry.attach(hello, peer.link(), at(seconds{0}));
    registry.detach(session, at(seconds{1}));
    registry.pin(job, pins_of(0xAA));
    EXPECT_THAT(peer.pins, IsEmpty());
    ASSERT_TRUE(registry.attach(hello, peer.link(), at(seconds{2})));
    EXPECT_THAT(peer.pins, ElementsAre("d1 00000000000000aa"));
}

PeerGroup group_of(std::uint64_t version, const std::string& uid = "d1") {
    return {uid, version, {{"node-1", "10.0.0.1:7331", 1}}};
}

TEST_F(SidecarRegistryTest, SendsAGroupOncePerChangeAndToNewStreams) {
    registry.publish({}, kReaders, at(seconds{0}).steady);
    ASSERT_TRUE(registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0})));
    registry.publish_peers({{"d1", group_of(7)}, {"d2", group_of(3, "d2")}});
    registry.publish_peers({{"d1", group_of(7)}, {"d2", group_of(3, "d2")}});
    EXPECT_THAT(peer.groups, ElementsAre(group_of(7)));
    EXPECT_EQ(registry.peer_group("d1"), group_of(7));
    Peer second;
    ASSERT_TRUE(registry.attach(hello_of("b", 1, "node-2"), second.link(), at(seconds{1})));
    EXPECT_THAT(second.groups, ElementsAre(group_of(7)));
    registry.publish_peers({{"d1", {"d1", 8, {}}}});
    EXPECT_THAT(peer.groups, ElementsAre(group_of(7), PeerGroup{"d1", 8, {}}));
}

TEST_F(SidecarRegistryTest, SendsAGroupOnlyToReadersOfTheDataset) {
    registry.publish({}, {{{"ml", "a"}, {"d2"}}}, at(seconds{0}).steady);
    ASSERT_TRUE(registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0})));
    registry.publish_peers({{"d1", group_of(7)}});
    EXPECT_THAT(peer.groups, IsEmpty());
    registry.publish({}, kReaders, at(seconds{1}).steady);
    registry.publish_peers({{"d1", group_of(7)}});
    EXPECT_THAT(peer.groups, ElementsAre(group_of(7))) << "its job is known now";
}

TEST_F(SidecarRegistryTest, AnswersAPeerRequestOnce) {
    const SessionId session =
        *registry.attach(hello_of("a", 0, "node-1"), peer.link(), at(seconds{0}));
    ASSERT_TRUE(registry.request_peer_certificate(session, {"request"}, at(seconds{0})));
    const std::vector<WaitingPeerRequest> waiting = registry.waiting_peer_requests();
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_EQ(waiting[0].pod, (ObjectKey{"ml", "a"}));
    EXPECT_EQ(waiting[0].request.request_pem, "request");
    EXPECT_EQ(registry.waiting_peer_requests().size(), 1U) << "until it is answered";
    registry.answer_peer_request(session, PeerCertificate{"chain", "trust", 60});
    EXPECT_THAT(registry.waiting_peer_requests(), IsEmpty());
    EXPECT_THAT(peer.certificates, ElementsAre("chain"));
    EXPECT_EQ(registry.counts().peer_certificates, 1U);
}

TEST_F(SidecarRegistryTest, TakesOnePeerRequestAMinuteFromAStream) {
    const Hello hello = hello_of("a", 0, "node-1");
    const SessionId session = *registry.attach(hello, peer.link(), at(seconds{0}));
    const auto ask = [&](SessionId from, Duration when) {
        const Status asked = registry.request_peer_certificate(from, {"request"}, at(when));
        return asked ? std::nullopt : std::optional(asked.error().code);
    };
    EXPECT_EQ(ask(session, seconds{0}), std::nullopt);
    EXPECT_EQ(ask(session, seconds{59}), ErrorCode::kResourceExhausted);
    EXPECT_EQ(ask(session, seconds{60}), std::nullopt);
    const SessionId next = *registry.attach(hello, peer.link(), at(seconds{61}));
    EXPECT_THAT(registry.waiting_peer_requests(), IsEmpty()) << "the old stream is over";
    EXPECT_EQ(ask(session, seconds{61}), ErrorCode::kGone);
    EXPECT_EQ(ask(next, seconds{61}), std::nullopt);
    const Status huge = registry.request_peer_certificate(
        next, {std::string(PeerRequest::kBytesMax + 1, 'x')}, at(minutes{5}));
    EXPECT_EQ(huge.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::control
