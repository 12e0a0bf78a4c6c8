#include "tests/support/node_client.h"

#include <chrono>

#include <grpcpp/grpcpp.h>

namespace stoker::testing {

NodeAnswer call_report(
    const std::string& address,
    const std::string& ca_pem,
    const std::string& token,
    const stoker::node::v1::NodeReport& report) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca_pem;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(16 << 20);
    const auto stub = stoker::node::v1::Nodes::NewStub(
        grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments));
    grpc::ClientContext context;
    if (!token.empty()) {
        context.AddMetadata("authorization", "Bearer " + token);
    }
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes{1});
    NodeAnswer answer;
    answer.status = stub->Report(&context, report, &answer.orders);
    return answer;
}

stoker::node::v1::NodeReport make_node_report(const std::string& node) {
    stoker::node::v1::NodeReport report;
    report.set_node(node);
    report.set_boot_id("boot-1");
    report.set_version("test");
    stoker::node::v1::PoolState* pool = report.add_pools();
    pool->set_pool("nvme");
    pool->set_path("/var/lib/stoker");
    pool->set_verdict(stoker::node::v1::POOL_VERDICT_READY);
    pool->set_capacity_bytes(1ULL << 40U);
    pool->set_free_bytes(1ULL << 39U);
    return report;
}

}  // namespace stoker::testing
