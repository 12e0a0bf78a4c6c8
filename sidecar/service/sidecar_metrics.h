#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/metrics/metrics.h"
#include "sidecar/service/dataset_node.h"

namespace stoker::sidecar {

// Every number that a sidecar shows at /metrics, labelled by dataset. Updated from one thread, read
// from any.
class SidecarMetrics {
public:
    explicit SidecarMetrics(metrics::Registry& registry);

    // Takes what one dataset looks like now.
    void update(const DatasetNode& node);

    void set_sessions(std::size_t count) { sessions_.set(static_cast<double>(count)); }

    // `total` since the program began.
    void set_accept_failures(std::uint64_t total) { grow(accept_failures_, {}, total); }

private:
    // A counter from a total that its owner keeps: it grows by what the total grew. A total that
    // fell (its owner began anew) is counted from there on.
    struct Total {
        std::shared_ptr<metrics::Counter> counter;
        std::uint64_t seen = 0;
    };

    void grow(
        metrics::CounterFamily& family,
        const metrics::LabelValues& labels,
        std::uint64_t to,
        double per_unit = 1);
    void update_leader(const std::string& dataset, const LeaderStatus& status);

    metrics::Gauge& sessions_;
    metrics::CounterFamily& accept_failures_;
    metrics::GaugeFamily& leading_;
    metrics::GaugeFamily& serving_;
    metrics::GaugeFamily& leader_silent_;
    metrics::GaugeFamily& admitting_;
    metrics::GaugeFamily& aside_;
    metrics::GaugeFamily& samples_;
    metrics::GaugeFamily& dataset_bytes_;
    metrics::GaugeFamily& granted_bytes_;
    metrics::GaugeFamily& disk_limit_bytes_;
    metrics::GaugeFamily& stored_bytes_;    // by class
    metrics::GaugeFamily& stored_samples_;  // by class
    metrics::GaugeFamily& in_flight_bytes_;
    metrics::CounterFamily& written_bytes_;
    metrics::CounterFamily& fetched_samples_;
    metrics::CounterFamily& fetched_bytes_;
    metrics::CounterFamily& demanded_samples_;  // by outcome
    metrics::CounterFamily& dropped_samples_;   // by reason
    metrics::CounterFamily& failures_;          // by part
    metrics::CounterFamily& trainer_samples_;   // by source
    metrics::CounterFamily& trainer_bytes_;
    metrics::CounterFamily& trainer_seconds_;  // by what
    std::map<std::pair<metrics::CounterFamily*, metrics::LabelValues>, Total> totals_;
};

}  // namespace stoker::sidecar
