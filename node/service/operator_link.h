#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::node {

// The interface to the operator.
class OperatorClient {
public:
    virtual ~OperatorClient() = default;

    // One call; blocks until it is answered or `time_limit` is over.
    virtual Result<v1::NodeOrders> report(const v1::NodeReport& report, Duration time_limit) = 0;
};

struct OperatorAccess {
    std::string endpoint;    // host:port
    std::string ca_file;     // PEM, read again for every connection
    std::string token_file;  // projected ServiceAccount token, read again for every call
};

// Calls over TLS. After a call that failed, the next one makes a new connection: behind the Service
// stands another replica, perhaps the leading one.
std::unique_ptr<OperatorClient> make_operator_client(OperatorAccess access);

}  // namespace stoker::node
