#pragma once

#include <string>

#include "proto/node/v1/node.grpc.pb.h"

namespace stoker::testing {

struct NodeAnswer {
    grpc::Status status;
    node::v1::NodeOrders orders;
};

// A node program's call to the operator: a real gRPC client on loopback, one unary call that accepts
// answers of 16 MiB. An empty token sends no authorization. Thread-safe.
NodeAnswer call_report(
    const std::string& address,
    const std::string& ca_pem,
    const std::string& token,
    const node::v1::NodeReport& report);

// A report of that node in which pool "nvme" at /var/lib/stoker is ready.
node::v1::NodeReport make_node_report(const std::string& node);

}  // namespace stoker::testing
