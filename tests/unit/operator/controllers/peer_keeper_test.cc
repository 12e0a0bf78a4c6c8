#include "operator/controllers/grants/peer_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/grants/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A sidecar of the bench's pod that leads and accepts peers.
struct PeerKeeperTest : ::testing::Test {
    PeerKeeperTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        bench.put(bench.cache.pods(), make_running_pod());
        bench.put(bench.cache.training_jobs(), make_running_job());
        bench.parts.issue_peer = [this](const std::string& request, const auto& uris) {
            asked.push_back(request);
            signed_uris.insert(signed_uris.end(), uris.begin(), uris.end());
            return issued;
        };
        peer = *bench.registry.attach(
            make_sidecar_hello(),
            {[this](const Orders& orders) {
                 groups.insert(groups.end(), orders.peers.begin(), orders.peers.end());
                 certificates += orders.peer_certificate ? 1 : 0;
             },
             [] {}},
            bench.now());
        keeper.emplace(
            bench.parts,
            60,
            GrantsController::OnChange{
                [this](const ObjectKey& job) { woken.push_back("job " + job.name); },
                [](const ObjectKey&) {},
                [](const ObjectKey&) {},
                [](const ObjectKey&) {},
                [](const EventNote&) {}});
    }

    void report(std::uint64_t sequence, const std::string& address) {
        Report told = make_sidecar_report(sequence);
        told.datasets[0].leader = true;
        told.datasets[0].peer_address = address;
        told.datasets[0].peer_generation = 5;
        ASSERT_TRUE(bench.registry.report(peer, told, bench.now()));
    }

    void step() {
        bench.clock.advance(seconds{1});
        ASSERT_TRUE(keeper->reconcile(GrantsController::key()));
    }

    test::ControllerBench bench;
    SessionId peer;
    std::vector<std::string> woken;
    std::vector<PeerGroup> groups;
    std::vector<std::string> asked;
    std::vector<std::string> signed_uris;
    int certificates = 0;
    Result<PeerCertificate> issued = PeerCertificate{"chain", "trust", 60};
    std::optional<GrantsController> keeper;  // with `issue_peer`
};

TEST_F(PeerKeeperTest, SendsTheGroupAndWakesItsJobs) {
    report(1, "10.0.0.1:7331");
    step();
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].dataset_uid, "d1");
    EXPECT_THAT(groups[0].members, ElementsAre(PeerMember{"node-1", "10.0.0.1:7331", 5}));
    EXPECT_THAT(woken, ::testing::Contains("job mnist"));
    report(2, "10.0.0.2:7331");
    step();
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_GT(groups[1].version, groups[0].version);
}

TEST_F(PeerKeeperTest, SendsTheReadsOfAJobWithPlacementClairvoyant) {
    TrainingJob job = make_running_job();
    job.spec.trainer.node_count = 2;
    job.spec.trainer.epochs = 3;
    job.spec.datasets[0].placement = SamplePlacement::kClairvoyant;
    job.spec.datasets[0].clairvoyant = {ReadOrder::kStoker, 7, true};
    bench.put(bench.cache.training_jobs(), job);
    bench.put(bench.cache.nodes(), make_ready_node("node-2"));
    Pod first = make_running_pod();
    first.meta.labels["batch.kubernetes.io/job-completion-index"] = "0";
    bench.put(bench.cache.pods(), first);
    Pod second = make_running_pod("node-2");
    second.meta.name = "mnist-a1-1-x";
    second.meta.labels["batch.kubernetes.io/job-completion-index"] = "1";
    bench.put(bench.cache.pods(), second);
    Hello hello = make_sidecar_hello();
    hello.pod = second.meta.name;
    hello.node = "node-2";
    const SessionId other = *bench.registry.attach(hello, {[](const auto&) {}, [] {}}, bench.now());
    report(1, "10.0.0.1:7331");
    Report told = make_sidecar_report(1);
    told.datasets[0].peer_address = "10.0.0.2:7331";
    told.datasets[0].peer_generation = 6;
    ASSERT_TRUE(bench.registry.report(other, told, bench.now()));
    step();
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].reads, (KnownReads{"j1", ReadOrder::kStoker, 7, true, 3, {0, 1}}));
    told.sequence = 2;
    told.datasets[0].reads_differ = true;
    told.datasets[0].peer_group_version = groups[0].version;
    ASSERT_TRUE(bench.registry.report(other, told, bench.now()));
    step();
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[1].reads, std::nullopt);
    EXPECT_GT(groups[1].version, groups[0].version);
}

TEST_F(PeerKeeperTest, CertifiesAPodForTheDatasetsOfItsNamespace) {
    ASSERT_TRUE(bench.registry.request_peer_certificate(peer, {"request"}, bench.now()));
    step();
    EXPECT_THAT(asked, ElementsAre("request"));
    EXPECT_THAT(signed_uris, ElementsAre("stoker://namespace/ml/dataset/d1"));
    EXPECT_EQ(certificates, 1);
    step();
    EXPECT_EQ(asked.size(), 1U);
}

TEST_F(PeerKeeperTest, ACertificateRequestWaitsUntilItsPodIsKnown) {
    Hello hello = make_sidecar_hello();
    hello.pod = "mnist-a1-1-late";
    const SessionId late = *bench.registry.attach(hello, {[](const auto&) {}, [] {}}, bench.now());
    ASSERT_TRUE(bench.registry.request_peer_certificate(late, {"request"}, bench.now()));
    step();
    EXPECT_THAT(asked, IsEmpty());
    Pod pod = make_running_pod();
    pod.meta.name = hello.pod;
    bench.put(bench.cache.pods(), pod);
    step();
    EXPECT_THAT(asked, ElementsAre("request"));
}

TEST_F(PeerKeeperTest, AnInvalidCertificateRequestIsDropped) {
    issued = fail(ErrorCode::kInvalidArgument, "no request");
    ASSERT_TRUE(bench.registry.request_peer_certificate(peer, {"request"}, bench.now()));
    step();
    step();
    EXPECT_EQ(asked.size(), 1U);
    EXPECT_EQ(certificates, 0);
}

}  // namespace
}  // namespace stoker::control
