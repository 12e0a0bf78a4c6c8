#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/metrics/metrics.h"
#include "sidecar/service/dataset_node.h"

namespace stoker::sidecar {

// Every number that a sidecar exports at /metrics, labelled by dataset. Updated from one thread,
// read from any.
class SidecarMetrics {
public:
    explicit SidecarMetrics(metrics::Registry& registry);
    ~SidecarMetrics();

    // Updates the metrics of one dataset.
    void update(const DatasetNode& node);

    void set_sessions(std::size_t count);

    // Sets the number of failed accepts since the program started.
    void set_accept_failures(std::uint64_t total);

private:
    // Feeds a counter with the increase of a total that another object keeps. If the total fell,
    // because its owner restarted, the counter continues from the lower value.
    struct Total {
        std::shared_ptr<metrics::Counter> counter;
        std::uint64_t seen = 0;
    };

    void grow(
        metrics::CounterFamily& family,
        const metrics::LabelValues& labels,
        std::uint64_t to,
        double per_unit = 1);
    void update_reads(const std::string& dataset, const DatasetNode& node);
    void update_peers(const std::string& dataset, const LeaderStatus& status);
    void update_leader(const std::string& dataset, const LeaderStatus& status);
    // Removes the gauges that only a leader knows; the dataset's counters stay.
    void forget_leader(const std::string& dataset);

    struct Families;

    std::unique_ptr<Families> families_;
    std::map<std::pair<metrics::CounterFamily*, metrics::LabelValues>, Total> totals_;
};

}  // namespace stoker::sidecar
