#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "common/metrics/metrics.h"
#include "common/metrics/process_metrics.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/manager.h"
#include "operator/kube/api_metrics.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/leader_elector.h"
#include "operator/sidecars/certificate_keeper.h"
#include "operator/sidecars/local_authenticator.h"

namespace stoker::control {

// All metric families of the operator. Names match client-go's and controller-runtime's where those
// exist, so that existing dashboards work. Each component keeps its numbers; expose() collects
// them. Thread-safe.
class OperatorMetrics {
public:
    // Sources of the exposed counts; all must outlive it.
    struct Sources {
        Manager& manager;
        ClusterCache& cache;
        EventRecorder& events;
        const LeaderElector* elector;  // null: no election, this replica always leads
        const Clock& clock;
        const ApiMetrics& api;
        const CertificateKeeper* certificate = nullptr;  // null: no certificate metrics
        LocalAuthenticator* tokens = nullptr;            // null: no metrics of tokens
        // The webhook's reviews by outcome; empty: no webhook. Thread-safe.
        std::function<std::map<std::string, std::uint64_t>()> reviews{};
    };

    // Call it before the manager's workers start: queue times are observed from then on.
    explicit OperatorMetrics(Sources sources);

    // The body of /metrics.
    std::string expose();

private:
    // Raises a counter to another component's total.
    void raise(metrics::CounterFamily& family, metrics::LabelValues labels, double total);
    void collect_reconciler(const Reconciler& reconciler);
    void collect_watch(const std::string& kind, const InformerCounts& counts);
    void collect_sidecars();
    void collect_nodes();

    Sources sources_;
    std::mutex mutex_;  // one collection at a time
    metrics::Registry registry_;
    metrics::ProcessMetrics process_{registry_};
    metrics::CounterFamily& accept_failures_;
    metrics::CounterFamily& reconciles_;
    metrics::GaugeFamily& active_workers_;
    metrics::GaugeFamily& queue_depth_;
    metrics::CounterFamily& queue_adds_;
    metrics::CounterFamily& queue_retries_;
    metrics::GaugeFamily& longest_running_;
    metrics::GaugeFamily& unfinished_;
    metrics::HistogramFamily& queue_seconds_;
    metrics::HistogramFamily& work_seconds_;
    metrics::GaugeFamily& leader_;
    metrics::CounterFamily& watch_lists_;
    metrics::CounterFamily& watch_events_;
    metrics::CounterFamily& watch_troubles_;
    metrics::CounterFamily& unreadable_;
    metrics::GaugeFamily& watch_objects_;
    metrics::GaugeFamily& watch_synced_;
    metrics::GaugeFamily& watch_silence_;
    metrics::Gauge& attached_;
    metrics::Gauge& certificate_expires_;
    metrics::CounterFamily& cut_off_;
    metrics::CounterFamily& reports_;
    metrics::CounterFamily& reports_absurd_;
    metrics::CounterFamily& node_reports_;
    metrics::CounterFamily& sweeps_;
    metrics::CounterFamily& tokens_;
    metrics::CounterFamily& events_dropped_;
    metrics::CounterFamily& reviews_;
};

}  // namespace stoker::control
