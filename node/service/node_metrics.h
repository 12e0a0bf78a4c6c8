#pragma once

#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/metrics/process_metrics.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::node {

// All metrics of the node program, except those of its requests to the API server. There is no
// series per pod, volume or dataset. Thread-safe.
class NodeMetrics {
public:
    NodeMetrics();

    // Counts a call of the kubelet: `method` and `code` as in gRPC, such as "NodePublishVolume" and
    // "NotFound".
    void observe_csi(const std::string& method, const std::string& code, Duration took);

    // Records the pools of a report to the operator, and whether the operator answered. Ends the
    // series of other pools. One caller at a time.
    void observe_report(const v1::NodeReport& report, bool answered);

    // The text to serve at /metrics.
    std::string expose();

private:
    void forget_pool(const std::string& pool);

    std::set<std::string> pools_;  // pools that have series
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
