// stoker.node.v1.Nodes over loopback.
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include "common/base/check.h"
#include "operator/sidecars/control_service.h"
#include "tests/support/certificates.h"
#include "tests/support/manual_clock.h"
#include "tests/support/node_client.h"
#include "tests/unit/operator/sidecars/fake_authenticator.h"

namespace stoker::control {
namespace {

using grpc::StatusCode;
using testing::call_report;
using testing::make_node_report;
using testing::NodeAnswer;

// The server that sidecars and node programs call, with node programs on n1 and n2.
struct NodeServiceTest : ::testing::Test {
    NodeServiceTest()
        : certificates(testing::make_certificates()) {
        authenticator.know("n1", {"stoker-system", "stoker-node", "node-a", "n1"});
        authenticator.know("old api server", {"stoker-system", "stoker-node", "node-b", ""});
        authenticator.know("new pod", {"stoker-system", "stoker-node", "node-c", ""});
        authenticator.know("tenant", {"ml", "stoker-node", "p", "n1"});
        authenticator.know("operator", {"stoker-system", "stoker-operator", "p", "n1"});
        ControlServiceOptions options;
        options.listen = "127.0.0.1:0";
        const auto served = std::make_shared<const ServedCertificate>(
            ServedCertificate{{certificates.certificate, certificates.key}, certificates.ca});
        options.certificate = [served] { return served; };
        options.node_call_count_max = 2;
        auto started = ControlService::start(
            options,
            sidecars,
            {nodes,
             {"stoker-system", "stoker-node"},
             [](const std::string& pod) { return pod == "node-b" ? "n2" : ""; }},
            authenticator,
            clock);
        STOKER_CHECK(started.has_value(), started.error().message.c_str());
        service = *std::move(started);
    }

    std::string address() const { return "localhost:" + std::to_string(service->port()); }

    NodeAnswer call(const std::string& token, const node::v1::NodeReport& report) {
        return call_report(address(), certificates.ca, token, report);
    }

    StatusCode end_of(const std::string& token, const std::string& node) {
        return call(token, make_node_report(node)).status.error_code();
    }

    testing::TestCertificates certificates;
    testing::ManualClock clock;
    FakeAuthenticator authenticator;
    SidecarRegistry sidecars{{}, nullptr};
    NodeRegistry nodes{
        {},
        [](const std::string& node) {
            return std::vector<PoolOrder>{{"nvme", "/mnt/" + node}};
        },
        nullptr};
    std::unique_ptr<ControlService> service;
};

TEST_F(NodeServiceTest, AcceptsAReportAndReturnsOrders) {
    EXPECT_EQ(nodes.listening_since(), clock.now());
    nodes.order_sweep("n1", {"7", "nvme", "/mnt/n1", {"ml/d1"}, {"d2"}});
    node::v1::NodeReport report = make_node_report("n1");
    node::v1::DirectoryUse* use = report.mutable_pools(0)->add_directories();
    use->set_namespace_("ml");
    use->set_dataset_uid("d1");
    use->set_bytes(4096);
    use->set_mounted(true);
    NodeAnswer answer = call("n1", report);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.orders.pools(0).pool(), "nvme");
    EXPECT_EQ(answer.orders.pools(0).path(), "/mnt/n1");
    EXPECT_EQ(answer.orders.next_call_seconds(), 2U);
    ASSERT_TRUE(answer.orders.has_sweep());
    EXPECT_EQ(answer.orders.sweep().id(), "7");
    EXPECT_EQ(answer.orders.sweep().kept(0), "ml/d1");
    EXPECT_EQ(answer.orders.sweep().expired(0), "d2");
    const NodeReport known = *nodes.all().at("n1");
    EXPECT_EQ(known.received_at, clock.now());
    EXPECT_EQ(known.pools.at(0).verdict, PoolVerdict::kReady);
    EXPECT_EQ(
        known.pools.at(0).directories,
        (std::vector<DirectoryUse>{{"ml", "d1", Bytes{4096}, true}}));

    node::v1::SweepResult* result = report.add_sweeps();
    result->set_id("7");
    result->set_succeeded(true);
    result->set_removed(1);
    answer = call("n1", report);
    EXPECT_FALSE(answer.orders.has_sweep());
    EXPECT_EQ(answer.orders.confirmed_sweeps(0), "7");
    EXPECT_EQ(nodes.take_results(), (std::vector<SweepResult>{{"7", true, "", 1}}));
}

TEST_F(NodeServiceTest, RejectsSendersThatDoNotSpeakForTheNode) {
    struct Case {
        const char* what;
        const char* token;
        const char* node;
        StatusCode want;
    };

    const Case cases[] = {
        {"no token", "", "n1", StatusCode::UNAUTHENTICATED},
        {"a bad token", "bad", "n1", StatusCode::UNAUTHENTICATED},
        {"nobody can tell now", "later", "n1", StatusCode::UNAVAILABLE},
        {"a tenant's account of that name", "tenant", "n1", StatusCode::PERMISSION_DENIED},
        {"another account of ours", "operator", "n1", StatusCode::PERMISSION_DENIED},
        {"another node", "n1", "n2", StatusCode::PERMISSION_DENIED},
        {"another node than its pod's", "old api server", "n1", StatusCode::PERMISSION_DENIED},
        {"a pod that nobody knows yet", "new pod", "n1", StatusCode::UNAVAILABLE},
        {"no node", "n1", "", StatusCode::PERMISSION_DENIED},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(end_of(c.token, c.node), c.want) << c.what;
    }
    EXPECT_TRUE(nodes.all().empty());
    EXPECT_EQ(end_of("old api server", "n2"), StatusCode::OK);
    EXPECT_EQ(nodes.counts().reports, 1U);
    EXPECT_GE(nodes.counts().reports_refused, 5U);
}

TEST_F(NodeServiceTest, RejectsImpossibleAndHugeReports) {
    node::v1::NodeReport report = make_node_report("n1");
    *report.add_pools() = report.pools(0);
    EXPECT_EQ(call("n1", report).status.error_code(), StatusCode::INVALID_ARGUMENT);
    report = make_node_report("n1");
    report.mutable_pools(0)->set_message(std::string(5U << 20U, 'm'));
    EXPECT_EQ(call("n1", report).status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(nodes.all().empty());
}

// The largest possible report and order stay within gRPC's limits.
TEST_F(NodeServiceTest, TransfersTheLargestReportAndOrder) {
    const std::string ns(63, 'n');
    const std::string uid(63, 'u');
    node::v1::NodeReport report = make_node_report("n1");
    for (std::size_t i = 0; i < kNodeDirectoryCountMax; ++i) {
        node::v1::DirectoryUse* use = report.mutable_pools(0)->add_directories();
        use->set_namespace_(ns);
        use->set_dataset_uid(uid);
        use->set_bytes(1ULL << 50U);
    }
    SweepOrder order{"7", "nvme", "/mnt/n1", {}, {}};
    order.kept.assign(100'000, ns + "/" + uid);
    nodes.order_sweep("n1", order);
    const NodeAnswer answer = call("n1", report);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.orders.sweep().kept_size(), 100'000);
}

TEST_F(NodeServiceTest, RejectsOtherMethods) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = certificates.ca;
    grpc::internal::RpcMethod method(
        "/stoker.node.v1.Nodes/Other", grpc::internal::RpcMethod::NORMAL_RPC);
    const auto channel = grpc::CreateChannel(address(), grpc::SslCredentials(tls));
    grpc::ClientContext context;
    node::v1::NodeOrders orders;
    const grpc::Status end =
        grpc::internal::BlockingUnaryCall<node::v1::NodeReport, node::v1::NodeOrders>(
            channel.get(), method, &context, make_node_report("n1"), &orders);
    EXPECT_EQ(end.error_code(), StatusCode::UNIMPLEMENTED);
}

TEST_F(NodeServiceTest, LimitsItsCallsAndEndsThemOnStop) {
    authenticator.hold = true;
    std::vector<StatusCode> ends(2, StatusCode::OK);
    std::vector<Authenticator::Done> held;
    std::vector<std::thread> callers;
    for (StatusCode& end : ends) {
        callers.emplace_back([&] { end = end_of("n1", "n1"); });
        const auto more = authenticator.take_held();
        held.insert(held.end(), more.begin(), more.end());
    }
    EXPECT_EQ(end_of("n1", "n1"), StatusCode::RESOURCE_EXHAUSTED);
    service.reset();
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(ends, (std::vector<StatusCode>(2, StatusCode::UNAVAILABLE)));
    for (const Authenticator::Done& done : held) {
        done(PodIdentity{"stoker-system", "stoker-node", "node-a", "n1"});  // too late, so ignored
    }
    EXPECT_TRUE(nodes.all().empty());
}

}  // namespace
}  // namespace stoker::control
