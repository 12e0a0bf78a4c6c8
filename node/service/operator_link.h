#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::node {

// The interface for calls to the operator.
class OperatorClient {
public:
    virtual ~OperatorClient() = default;

    // Sends one report; blocks until the response or the end of `time_limit`.
    virtual Result<v1::NodeOrders> report(const v1::NodeReport& report, Duration time_limit) = 0;
};

struct OperatorAccess {
    std::string endpoint;    // host:port
    std::string ca_file;     // PEM, reloaded for every connection
    std::string token_file;  // projected ServiceAccount token, reloaded for every call
};

// Calls the operator over TLS. After a failed call, the next one opens a new connection, because
// the Service may route it to another replica, which may be the leader.
std::unique_ptr<OperatorClient> make_operator_client(OperatorAccess access);

}  // namespace stoker::node
