#include "sidecar/service/sidecar_metrics.h"

#include <utility>

namespace stoker::sidecar {

namespace {

constexpr double kNanosecondsPerSecond = 1e9;

double number(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

}  // namespace

SidecarMetrics::SidecarMetrics(metrics::Registry& registry)
    : sessions_(registry.gauge("stoker_sidecar_sessions", "Connections of trainers' processes.")),
      accept_failures_(registry.counter_family(
          "stoker_sidecar_accept_failures_total",
          "Attempts to accept a connection that failed, on any socket: no descriptor is left.",
          {})),
      leading_(registry.gauge_family(
          "stoker_sidecar_leading", "1 while this sidecar leads the node directory.", {"dataset"})),
      serving_(registry.gauge_family(
          "stoker_sidecar_serving",
          "1 while samples can be had, from here or through the leader.",
          {"dataset"})),
      leader_silent_(registry.gauge_family(
          "stoker_sidecar_leader_silent_seconds",
          "For how long another process has held the directory's lock without an answer; 0 below "
          "10 s.",
          {"dataset"})),
      admitting_(registry.gauge_family(
          "stoker_sidecar_admitting",
          "0 while the disk is full, failing or too slow and nothing new is stored.",
          {"dataset"})),
      aside_(registry.gauge_family(
          "stoker_sidecar_stepped_aside",
          "1 while trainers are sent to the origin because the disk is slower than it.",
          {"dataset"})),
      samples_(registry.gauge_family(
          "stoker_sidecar_dataset_samples", "Samples of the revision.", {"dataset"})),
      dataset_bytes_(registry.gauge_family(
          "stoker_sidecar_dataset_bytes", "Payload bytes of the revision.", {"dataset"})),
      granted_bytes_(registry.gauge_family(
          "stoker_sidecar_granted_bytes", "Bytes that may be resident on this node.", {"dataset"})),
      disk_limit_bytes_(registry.gauge_family(
          "stoker_sidecar_disk_limit_bytes",
          "Bytes that the node's disk has room for, whatever is granted.",
          {"dataset"})),
      stored_bytes_(registry.gauge_family(
          "stoker_sidecar_stored_bytes",
          "Record bytes in the node directory, by class.",
          {"dataset", "class"})),
      stored_samples_(registry.gauge_family(
          "stoker_sidecar_stored_samples",
          "Samples in the node directory, by class.",
          {"dataset", "class"})),
      in_flight_bytes_(registry.gauge_family(
          "stoker_sidecar_in_flight_bytes",
          "Payload bytes on their way from the origin to the disk.",
          {"dataset"})),
      written_bytes_(registry.counter_family(
          "stoker_sidecar_written_bytes_total",
          "Bytes written to the node directory, copies by the cleaner included.",
          {"dataset"})),
      fetched_samples_(registry.counter_family(
          "stoker_sidecar_fetched_samples_total", "Samples fetched and stored.", {"dataset"})),
      fetched_bytes_(registry.counter_family(
          "stoker_sidecar_fetched_bytes_total", "Their payload bytes.", {"dataset"})),
      demanded_samples_(registry.counter_family(
          "stoker_sidecar_demanded_samples_total",
          "Samples that clients asked for, by outcome: ready at once, waited for, sent to the "
          "origin, failed at the origin.",
          {"dataset", "outcome"})),
      dropped_samples_(registry.counter_family(
          "stoker_sidecar_dropped_samples_total",
          "Samples that left the node directory: read by all, evicted from the window to make "
          "room, residents replaced by others, over the grant, damaged.",
          {"dataset", "reason"})),
      failures_(registry.counter_family(
          "stoker_sidecar_failures_total",
          "Fetches that failed, by part: origin (after its retries) or store.",
          {"dataset", "part"})),
      trainer_samples_(registry.counter_family(
          "stoker_sidecar_trainer_samples_total",
          "Samples that the pod's trainers read, by source: cache (nothing crossed the link to the "
          "origin for it), fetched (ahead or on demand, for this read), origin (past us).",
          {"dataset", "source"})),
      trainer_bytes_(registry.counter_family(
          "stoker_sidecar_trainer_bytes_total",
          "Bytes that the pod's trainers read.",
          {"dataset"})),
      trainer_seconds_(registry.counter_family(
          "stoker_sidecar_trainer_seconds_total",
          "Time of the pod's trainers, by what: wait (for data) or compute.",
          {"dataset", "what"})) {}

void SidecarMetrics::update(const DatasetNode& node) {
    const std::string& name = node.config().name;
    const bool leading = node.role() == Role::kLeading;
    leading_.with({name})->set(leading ? 1 : 0);
    serving_.with({name})->set(node.is_serving() ? 1 : 0);
    leader_silent_.with({name})->set(std::chrono::duration<double>(node.leader_silence()).count());
    if (leading) {
        update_leader(name, node.leader()->status());
    }
    const JobTotals job = node.job();
    grow(trainer_samples_, {name, "cache"}, job.counted.hit_samples);
    grow(trainer_samples_, {name, "fetched"}, job.counted.fetched_samples);
    grow(trainer_samples_, {name, "origin"}, job.fallback_samples);
    grow(trainer_bytes_, {name}, job.bytes.count());
    grow(
        trainer_seconds_,
        {name, "wait"},
        static_cast<std::uint64_t>(job.wait.count()),
        kNanosecondsPerSecond);
    grow(
        trainer_seconds_,
        {name, "compute"},
        static_cast<std::uint64_t>(job.compute.count()),
        kNanosecondsPerSecond);
}

void SidecarMetrics::update_leader(const std::string& name, const LeaderStatus& status) {
    const EngineCounters& counters = status.counters;
    admitting_.with({name})->set(status.admitting ? 1 : 0);
    aside_.with({name})->set(status.aside ? 1 : 0);
    samples_.with({name})->set(static_cast<double>(status.samples));
    dataset_bytes_.with({name})->set(number(status.total_bytes));
    granted_bytes_.with({name})->set(number(status.granted_bytes));
    if (status.disk_limit) {
        disk_limit_bytes_.with({name})->set(number(status.disk_limit->resident));
    }
    stored_bytes_.with({name, "resident"})->set(number(status.usage.resident_bytes));
    stored_bytes_.with({name, "window"})->set(number(status.usage.window_bytes));
    stored_samples_.with({name, "resident"})
        ->set(static_cast<double>(status.usage.resident_samples));
    stored_samples_.with({name, "window"})->set(static_cast<double>(status.usage.window_samples));
    in_flight_bytes_.with({name})->set(number(status.bytes.in_flight));
    grow(written_bytes_, {name}, status.usage.written_bytes.count());
    grow(fetched_samples_, {name}, counters.stored_samples);
    grow(fetched_bytes_, {name}, counters.stored_bytes);
    const std::uint64_t waited = counters.demanded_samples - counters.demand_ready_samples -
                                 counters.demand_bypassed_samples - counters.demand_failed_samples;
    grow(demanded_samples_, {name, "ready"}, counters.demand_ready_samples);
    grow(demanded_samples_, {name, "waited"}, waited);
    grow(demanded_samples_, {name, "bypassed"}, counters.demand_bypassed_samples);
    grow(demanded_samples_, {name, "failed"}, counters.demand_failed_samples);
    grow(dropped_samples_, {name, "read"}, counters.dropped_window_samples);
    grow(dropped_samples_, {name, "evicted"}, counters.evicted_window_samples);
    grow(dropped_samples_, {name, "replaced"}, counters.evicted_resident_samples);
    grow(dropped_samples_, {name, "grant"}, counters.dropped_resident_samples);
    grow(dropped_samples_, {name, "damaged"}, counters.corrupt_samples);
    grow(failures_, {name, "origin"}, counters.origin_failures);
    grow(failures_, {name, "store"}, counters.store_failures);
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
