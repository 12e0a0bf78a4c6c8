#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "node/service/node_metrics.h"
#include "node/service/publisher.h"

namespace stoker::node {

struct CsiServerOptions {
    std::string node;               // metadata.name
    std::string driver;             // the driver's name
    std::string kubelet_directory;  // "/var/lib/kubelet", the same path on the host and here
};

// CSI's Identity and Node services, and the kubelet's plugin registration, on two Unix sockets for
// root only: <kubelet>/plugins/<driver>/csi.sock and <kubelet>/plugins_registry/<driver>-reg.sock.
// Serves from start() to its destruction, which removes the sockets.
class CsiServer {
public:
    // `publisher` and `metrics` must outlive it. kUnavailable: the kubelet's folder is missing, or a
    // socket cannot be created.
    static Result<std::unique_ptr<CsiServer>> start(
        const CsiServerOptions& options, Publisher& publisher, NodeMetrics& metrics);

    virtual ~CsiServer() = default;
};

}  // namespace stoker::node
