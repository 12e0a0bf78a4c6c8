#pragma once

#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/metrics/process_metrics.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::node {

// All metrics of the node program but those of its requests to the API server. No series per pod,
// volume or dataset. Thread-safe.
class NodeMetrics {
public:
    NodeMetrics();

    // A call of the kubelet: `method` and `code` as gRPC names them, e.g. "NodePublishVolume" and
    // "NotFound".
    void observe_csi(const std::string& method, const std::string& code, Duration took);

    // The pools of a report to the operator, and whether it answered. Series of other pools end. One
    // caller at a time.
    void observe_report(const v1::NodeReport& report, bool answered);

    // The body of /metrics.
    std::string expose();

private:
    void forget_pool(const std::string& pool);

    std::set<std::string> pools_;  // with series
    metrics::Registry registry_;
    metrics::ProcessMetrics process_{registry_};
    metrics::HistogramFamily& csi_seconds_;
    metrics::CounterFamily& reports_;
    metrics::GaugeFamily& pool_ready_;
    metrics::GaugeFamily& pool_used_;
    metrics::GaugeFamily& pool_free_;
    metrics::GaugeFamily& pool_directories_;
};

}  // namespace stoker::node
