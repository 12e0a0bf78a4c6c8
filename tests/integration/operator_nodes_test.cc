// A real operator with node programs: their reports and its orders.
#include "tests/integration/operator_fixture.h"
#include "tests/support/node_client.h"

namespace stoker::test {
namespace {

using ::testing::HasSubstr;
using testing::make_node_report;
using testing::NodeAnswer;

struct OperatorNodes : OperatorTest {
    OperatorNodes()
        : token(cluster.add_node_program("node-1")) {}

    // Sends a report as node-1's program.
    NodeAnswer call(const node::v1::NodeReport& report) {
        return testing::call_report(
            operator_->wait_control_address(), operator_->ca(), token, report);
    }

    std::string wait_ready(const std::string& want) {
        return wait_condition(kinds::kCachePools, "nvme", "Ready", want);
    }

    std::string token;
};

TEST_F(OperatorNodes, PoolIsReadyAfterNodeProgramReportsIt) {
    EXPECT_EQ(wait_ready("Unknown NodesNotHeard"), "Unknown NodesNotHeard");
    node::v1::NodeReport report;
    report.set_node("node-1");
    const NodeAnswer answer = call(report);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.orders.pools_size(), 1);
    EXPECT_EQ(answer.orders.pools(0).pool(), "nvme");
    EXPECT_EQ(answer.orders.pools(0).path(), "/var/lib/stoker");
    EXPECT_GE(answer.orders.next_call_seconds(), 5U);

    report = make_node_report("node-1");
    report.mutable_pools(0)->set_verdict(node::v1::POOL_VERDICT_NOT_EMPTY);
    report.mutable_pools(0)->set_message("/var/lib/stoker on node-1 is not empty: photos");
    ASSERT_TRUE(call(report).status.ok());
    EXPECT_EQ(wait_ready("False NotEmpty"), "False NotEmpty");
    EXPECT_THAT(cluster.message(kinds::kCachePools, "nvme", "Ready"), HasSubstr("photos"));

    ASSERT_TRUE(call(make_node_report("node-1")).status.ok());
    EXPECT_EQ(wait_ready("True Ready"), "True Ready");
    EXPECT_THAT(
        operator_->http_body("/metrics"),
        HasSubstr("stoker_pool_node_verdict{pool=\"nvme\",verdict=\"Ready\"} 1"));
}

TEST_F(OperatorNodes, AcceptsReportsOnlyForTheSendersNode) {
    cluster.add_node("node-2");
    EXPECT_EQ(
        call(make_node_report("node-2")).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    cluster.add_token("token.of.tenant", "p", "node-1");
    token = "token.of.tenant";
    EXPECT_EQ(
        call(make_node_report("node-1")).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(cluster.condition(kinds::kCachePools, "nvme", "Ready"), "Unknown NodesNotHeard");
}

TEST_F(OperatorNodes, NodeProgramSweepsDeletedDataset) {
    ASSERT_TRUE(call(make_node_report("node-1")).status.ok());
    run_job("mnist");
    auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 60'000)));
    ASSERT_TRUE(eventually([&] {
        return cluster.find(kinds::kDatasets, "digits")->text().find("placements") !=
               std::string::npos;
    }));
    cluster.finish("mnist-a1", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    sidecar.reset();
    ASSERT_TRUE(eventually([&] {
        return operator_->http_body("/metrics").find("stoker_control_attached 0") !=
               std::string::npos;
    }));
    cluster.remove(kinds::kDatasets, "digits");
    NodeAnswer answer;
    ASSERT_TRUE(eventually([&] {
        answer = call(make_node_report("node-1"));
        return answer.orders.has_sweep();
    }));
    EXPECT_EQ(answer.orders.next_call_seconds(), 2U);
    ASSERT_EQ(answer.orders.sweep().expired_size(), 1);
    EXPECT_EQ(answer.orders.sweep().expired(0), dataset_uid);
    EXPECT_EQ(answer.orders.sweep().kept_size(), 0);

    node::v1::NodeReport done = make_node_report("node-1");
    node::v1::SweepResult* result = done.add_sweeps();
    result->set_id(answer.orders.sweep().id());
    result->set_succeeded(true);
    answer = call(done);
    EXPECT_FALSE(answer.orders.has_sweep());
    EXPECT_EQ(answer.orders.confirmed_sweeps_size(), 1);
    EXPECT_TRUE(eventually([&] {
        return operator_->http_body("/metrics")
                   .find("stoker_sweeps_total{result=\"succeeded\"} 1") != std::string::npos;
    }));
}

}  // namespace
}  // namespace stoker::test
