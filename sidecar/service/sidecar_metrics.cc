#include "sidecar/service/sidecar_metrics.h"

namespace stoker::sidecar {

namespace {

constexpr double kNanosecondsPerSecond = 1e9;

double number(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

}  // namespace

struct SidecarMetrics::Families {
    metrics::Registry& registry;
    metrics::Gauge& sessions =
        registry.gauge("stoker_sidecar_sessions", "Connections of trainers' processes.");
    metrics::CounterFamily& accept_failures = registry.counter_family(
        "stoker_sidecar_accept_failures_total",
        "Attempts to accept a connection that failed, on any socket: no descriptor is left.",
        {});
    metrics::GaugeFamily& leading = registry.gauge_family(
        "stoker_sidecar_leading", "1 while this sidecar leads the node directory.", {"dataset"});
    metrics::GaugeFamily& serving = registry.gauge_family(
        "stoker_sidecar_serving",
        "1 while samples can be had, from here or through the leader.",
        {"dataset"});
    metrics::GaugeFamily& leader_silent = registry.gauge_family(
        "stoker_sidecar_leader_silent_seconds",
        "For how long another process has held the directory's lock without an answer; 0 below "
        "10 s.",
        {"dataset"});
    metrics::GaugeFamily& admitting = registry.gauge_family(
        "stoker_sidecar_admitting",
        "0 while the disk is full, failing or too slow and nothing new is stored.",
        {"dataset"});
    metrics::GaugeFamily& aside = registry.gauge_family(
        "stoker_sidecar_stepped_aside",
        "1 while trainers are sent to the origin because the disk is slower than it.",
        {"dataset"});
    metrics::GaugeFamily& samples = registry.gauge_family(
        "stoker_sidecar_dataset_samples", "Samples of the revision.", {"dataset"});
    metrics::GaugeFamily& dataset_bytes = registry.gauge_family(
        "stoker_sidecar_dataset_bytes", "Payload bytes of the revision.", {"dataset"});
    metrics::GaugeFamily& granted_bytes = registry.gauge_family(
        "stoker_sidecar_granted_bytes", "Bytes that may be resident on this node.", {"dataset"});
    metrics::GaugeFamily& disk_limit_bytes = registry.gauge_family(
        "stoker_sidecar_disk_limit_bytes",
        "Bytes that the node's disk has room for, whatever is granted.",
        {"dataset"});
    metrics::GaugeFamily& stored_bytes = registry.gauge_family(
        "stoker_sidecar_stored_bytes",
        "Record bytes in the node directory, by class.",
        {"dataset", "class"});
    metrics::GaugeFamily& stored_samples = registry.gauge_family(
        "stoker_sidecar_stored_samples",
        "Samples in the node directory, by class.",
        {"dataset", "class"});
    metrics::GaugeFamily& window_size_bytes = registry.gauge_family(
        "stoker_sidecar_window_size_bytes",
        "Bytes that the window may have now, those borrowed from the grant included.",
        {"dataset"});
    metrics::GaugeFamily& window_lacking_bytes = registry.gauge_family(
        "stoker_sidecar_window_lacking_bytes",
        "Bytes that unread draws need beyond grant and window; above 0 the TrainingJob says "
        "WindowTooSmall.",
        {"dataset"});
    metrics::GaugeFamily& in_flight_bytes = registry.gauge_family(
        "stoker_sidecar_in_flight_bytes",
        "Payload bytes on their way from the origin or a peer to the disk.",
        {"dataset"});
    metrics::GaugeFamily& origin_concurrency = registry.gauge_family(
        "stoker_sidecar_origin_concurrency",
        "Fetches that may be in flight to the origin now, at most maxInFlight; the sidecar "
        "searches "
        "the fewest that give the highest throughput.",
        {"dataset"});
    metrics::CounterFamily& written_bytes = registry.counter_family(
        "stoker_sidecar_written_bytes_total",
        "Bytes written to the node directory, copies by the cleaner included.",
        {"dataset"});
    metrics::CounterFamily& fetched_samples = registry.counter_family(
        "stoker_sidecar_fetched_samples_total", "Samples fetched and stored.", {"dataset"});
    metrics::CounterFamily& fetched_bytes = registry.counter_family(
        "stoker_sidecar_fetched_bytes_total", "Payload bytes fetched and stored.", {"dataset"});
    metrics::CounterFamily& demanded_samples = registry.counter_family(
        "stoker_sidecar_demanded_samples_total",
        "Samples that clients asked for, by outcome: ready at once, waited for, sent to the "
        "origin, failed at the origin.",
        {"dataset", "outcome"});
    metrics::CounterFamily& dropped_samples = registry.counter_family(
        "stoker_sidecar_dropped_samples_total",
        "Samples that left the node directory: read by all, evicted from the window to make "
        "room, residents replaced by others, over the grant, damaged.",
        {"dataset", "reason"});
    metrics::CounterFamily& failures = registry.counter_family(
        "stoker_sidecar_failures_total",
        "Fetches that failed, by part: origin (after its retries) or store.",
        {"dataset", "part"});
    metrics::CounterFamily& manifests = registry.counter_family(
        "stoker_sidecar_manifests_total",
        "Manifests that this sidecar got as leader, by source: listed (it listed the origin) or "
        "taken "
        "(another node had listed it).",
        {"dataset", "source"});
    metrics::GaugeFamily& peers = registry.gauge_family(
        "stoker_sidecar_peers",
        "Nodes that share the dataset's samples, this one included; 0: none do.",
        {"dataset"});
    metrics::CounterFamily& peer_samples = registry.counter_family(
        "stoker_sidecar_peer_samples_total",
        "Samples asked of the nodes that own them, by outcome: received, late (fetched at the "
        "origin because the node was slow) or failed (fetched at the origin because it failed, "
        "refused or was not asked).",
        {"dataset", "outcome"});
    metrics::CounterFamily& taken_over = registry.counter_family(
        "stoker_sidecar_taken_over_samples_total",
        "Own samples asked of a former owner, by outcome: received, lacked (fetched at the origin "
        "because the node did not have it) or failed (fetched at the origin because the node was "
        "slow or failed).",
        {"dataset", "outcome"});
    metrics::CounterFamily& peer_bytes = registry.counter_family(
        "stoker_sidecar_peer_bytes_total",
        "Payload bytes received from other nodes and stored.",
        {"dataset"});
    metrics::CounterFamily& trainer_samples = registry.counter_family(
        "stoker_sidecar_trainer_samples_total",
        "Samples that the pod's trainers read, by source: cache (nothing crossed the link to the "
        "origin for it), fetched (ahead or on demand, for this read), origin (past us).",
        {"dataset", "source"});
    metrics::CounterFamily& access_samples = registry.counter_family(
        "stoker_sidecar_access_samples_total",
        "Samples that the pod's programs reported as read, by access (sdk, s3 or files) and "
        "source: "
        "node (from the node, or fetched by a sidecar) or origin (past us).",
        {"dataset", "access", "source"});
    metrics::CounterFamily& access_bytes = registry.counter_family(
        "stoker_sidecar_access_bytes_total",
        "Bytes that the pod's programs reported as read, by access (sdk, s3 or files).",
        {"dataset", "access"});
    metrics::CounterFamily& trainer_bytes = registry.counter_family(
        "stoker_sidecar_trainer_bytes_total", "Bytes that the pod's trainers read.", {"dataset"});
    metrics::CounterFamily& trainer_seconds = registry.counter_family(
        "stoker_sidecar_trainer_seconds_total",
        "Time of the pod's trainers, by what: wait (for data) or compute.",
        {"dataset", "what"});
};

SidecarMetrics::SidecarMetrics(metrics::Registry& registry)
    : families_(new Families{registry}) {}

SidecarMetrics::~SidecarMetrics() = default;

void SidecarMetrics::set_sessions(std::size_t count) {
    families_->sessions.set(static_cast<double>(count));
}

void SidecarMetrics::set_accept_failures(std::uint64_t total) {
    grow(families_->accept_failures, {}, total);
}

void SidecarMetrics::update(const DatasetNode& node) {
    Families& families = *families_;
    const std::string& name = node.config().name;
    const bool leading = node.role() == Role::kLeading;
    families.leading.with({name})->set(leading ? 1 : 0);
    families.serving.with({name})->set(node.is_serving() ? 1 : 0);
    families.leader_silent.with({name})->set(
        std::chrono::duration<double>(node.leader_silence()).count());
    if (leading) {
        const LeaderStatus status = node.leader()->status();
        update_leader(name, status);
        update_peers(name, status);
        families.origin_concurrency.with({name})->set(
            static_cast<double>(status.origin_concurrency));
    } else {
        forget_leader(name);
    }
    update_reads(name, node);
}

void SidecarMetrics::update_reads(const std::string& name, const DatasetNode& node) {
    Families& families = *families_;
    for (const auto& [access, reads] : node.reads_by_access()) {
        const std::string label{access};
        grow(families.access_samples, {name, label, "node"}, reads.node_samples);
        grow(families.access_samples, {name, label, "origin"}, reads.origin_samples);
        grow(families.access_bytes, {name, label}, reads.bytes.count());
    }
    const JobTotals job = node.job();
    grow(families.trainer_samples, {name, "cache"}, job.counted.hit_samples);
    grow(families.trainer_samples, {name, "fetched"}, job.counted.fetched_samples);
    grow(families.trainer_samples, {name, "origin"}, job.fallback_samples);
    grow(families.trainer_bytes, {name}, job.bytes.count());
    grow(
        families.trainer_seconds,
        {name, "wait"},
        static_cast<std::uint64_t>(job.wait.count()),
        kNanosecondsPerSecond);
    grow(
        families.trainer_seconds,
        {name, "compute"},
        static_cast<std::uint64_t>(job.compute.count()),
        kNanosecondsPerSecond);
}

void SidecarMetrics::update_peers(const std::string& name, const LeaderStatus& status) {
    Families& families = *families_;
    grow(families.manifests, {name, "listed"}, status.manifests_listed);
    grow(families.manifests, {name, "taken"}, status.manifests_taken);
    families.peers.with({name})->set(static_cast<double>(status.peer_members));
    grow(
        families.peer_samples, {name, "received"}, status.peer_samples - status.taken_over_samples);
    grow(families.peer_samples, {name, "late"}, status.peer_hedges);
    grow(families.peer_samples, {name, "failed"}, status.peer_failures);
    grow(families.taken_over, {name, "received"}, status.taken_over_samples);
    grow(families.taken_over, {name, "lacked"}, status.take_overs_lacked);
    grow(families.taken_over, {name, "failed"}, status.take_overs_failed);
    grow(families.peer_bytes, {name}, status.peer_bytes_read.count());
}

void SidecarMetrics::update_leader(const std::string& name, const LeaderStatus& status) {
    Families& families = *families_;
    const EngineCounters& counters = status.counters;
    families.admitting.with({name})->set(status.admitting ? 1 : 0);
    families.aside.with({name})->set(status.aside ? 1 : 0);
    families.samples.with({name})->set(static_cast<double>(status.samples));
    families.dataset_bytes.with({name})->set(number(status.total_bytes));
    families.granted_bytes.with({name})->set(number(status.granted_bytes));
    if (status.disk_limit) {
        families.disk_limit_bytes.with({name})->set(number(status.disk_limit->resident));
    }
    families.stored_bytes.with({name, "resident"})->set(number(status.usage.resident_bytes));
    families.stored_bytes.with({name, "window"})->set(number(status.usage.window_bytes));
    families.stored_samples.with({name, "resident"})
        ->set(static_cast<double>(status.usage.resident_samples));
    families.stored_samples.with({name, "window"})
        ->set(static_cast<double>(status.usage.window_samples));
    families.window_size_bytes.with({name})->set(number(status.window_size));
    families.window_lacking_bytes.with({name})->set(number(status.window_lacks_bytes));
    families.in_flight_bytes.with({name})->set(number(status.bytes.in_flight));
    grow(families.written_bytes, {name}, status.usage.written_bytes.count());
    grow(families.fetched_samples, {name}, counters.stored_samples);
    grow(families.fetched_bytes, {name}, counters.stored_bytes);
    const std::uint64_t waited = counters.demanded_samples - counters.demand_ready_samples -
                                 counters.demand_bypassed_samples - counters.demand_failed_samples;
    grow(families.demanded_samples, {name, "ready"}, counters.demand_ready_samples);
    grow(families.demanded_samples, {name, "waited"}, waited);
    grow(families.demanded_samples, {name, "bypassed"}, counters.demand_bypassed_samples);
    grow(families.demanded_samples, {name, "failed"}, counters.demand_failed_samples);
    grow(families.dropped_samples, {name, "read"}, counters.dropped_window_samples);
    grow(families.dropped_samples, {name, "evicted"}, counters.evicted_window_samples);
    grow(families.dropped_samples, {name, "replaced"}, counters.evicted_resident_samples);
    grow(families.dropped_samples, {name, "grant"}, counters.dropped_resident_samples);
    grow(families.dropped_samples, {name, "damaged"}, counters.corrupt_samples);
    grow(families.failures, {name, "origin"}, counters.origin_failures);
    grow(families.failures, {name, "store"}, counters.store_failures);
}

void SidecarMetrics::forget_leader(const std::string& name) {
    Families& families = *families_;
    for (metrics::GaugeFamily* family :
         {&families.admitting,
          &families.aside,
          &families.samples,
          &families.dataset_bytes,
          &families.granted_bytes,
          &families.disk_limit_bytes,
          &families.window_size_bytes,
          &families.window_lacking_bytes,
          &families.in_flight_bytes,
          &families.origin_concurrency,
          &families.peers}) {
        family->remove({name});
    }
    for (const char* kind : {"resident", "window"}) {
        families.stored_bytes.remove({name, kind});
        families.stored_samples.remove({name, kind});
    }
}

void SidecarMetrics::grow(
    metrics::CounterFamily& family,
    const metrics::LabelValues& labels,
    std::uint64_t to,
    double per_unit) {
    Total& total = totals_[{&family, labels}];
    if (total.counter == nullptr) {
        total.counter = family.with(labels);
    }
    if (to > total.seen) {
        total.counter->add(static_cast<double>(to - total.seen) / per_unit);
    }
    total.seen = to;
}

}  // namespace stoker::sidecar
