#include "operator/controllers/operator_metrics.h"

#include <chrono>
#include <utility>
#include <vector>

#include "common/base/accept_backoff.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/object_metrics.h"
#include "operator/sidecars/connection_gate.h"

namespace stoker::control {

namespace {

// Buckets as in client-go: 10 ns to 1000 s.
std::vector<double> queue_bounds() {
    constexpr double kFirst = 1e-8;
    constexpr double kFactor = 10;
    constexpr std::size_t kCount = 12;
    return metrics::exponential_bounds(kFirst, kFactor, kCount);
}

// 1 ms to 33 s.
std::vector<double> plan_bounds() {
    constexpr double kFirst = 1e-3;
    constexpr double kFactor = 2;
    constexpr std::size_t kCount = 16;
    return metrics::exponential_bounds(kFirst, kFactor, kCount);
}

double in_seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

OperatorMetrics::OperatorMetrics(Sources sources)
    : sources_(sources),
      accept_failures_(registry_.counter_family(
          "stoker_operator_accept_failures_total",
          "Failed attempts to accept an HTTP connection: no file descriptor was free.",
          {})),
      reconciles_(registry_.counter_family(
          "controller_runtime_reconcile_total",
          "Reconciliations by controller and result.",
          {"controller", "result"})),
      active_workers_(registry_.gauge_family(
          "controller_runtime_active_workers", "Reconciliations in progress.", {"controller"})),
      queue_depth_(registry_.gauge_family(
          "workqueue_depth",
          "Keys that wait for a worker, by priority: normal, or background (looks that no user "
          "waits for).",
          {"name", "priority"})),
      queue_adds_(
          registry_.counter_family("workqueue_adds_total", "Keys added to the queue.", {"name"})),
      queue_retries_(registry_.counter_family(
          "workqueue_retries_total", "Keys added again after an error.", {"name"})),
      longest_running_(registry_.gauge_family(
          "workqueue_longest_running_processor_seconds",
          "Age of the oldest reconciliation in progress.",
          {"name"})),
      unfinished_(registry_.gauge_family(
          "workqueue_unfinished_work_seconds",
          "Summed age of the reconciliations in progress.",
          {"name"})),
      queue_seconds_(registry_.histogram_family(
          "workqueue_queue_duration_seconds",
          "Time that keys waited for a worker.",
          {"name"},
          queue_bounds())),
      work_seconds_(registry_.histogram_family(
          "workqueue_work_duration_seconds",
          "Duration of a reconciliation.",
          {"name"},
          queue_bounds())),
      leader_(registry_.gauge_family(
          "leader_election_master_status", "1 on the replica that leads.", {"name"})),
      watch_lists_(registry_.counter_family(
          "stoker_watch_lists_total", "Complete lists received from the API server.", {"kind"})),
      watch_events_(registry_.counter_family(
          "stoker_watch_events_total", "Changes and bookmarks received by watches.", {"kind"})),
      watch_troubles_(registry_.counter_family(
          "stoker_watch_troubles_total",
          "Watches that were refused, cut or out of order.",
          {"kind"})),
      unreadable_(registry_.counter_family(
          "stoker_watch_unreadable_total", "Objects that could not be parsed.", {"kind"})),
      watch_objects_(registry_.gauge_family(
          "stoker_watch_objects", "Objects in the operator's cache.", {"kind"})),
      watch_synced_(registry_.gauge_family(
          "stoker_watch_synced", "1 once the first list is in the cache.", {"kind"})),
      watch_silence_(registry_.gauge_family(
          "stoker_watch_silence_seconds",
          "Time since the API server's last message; bookmarks come about every minute.",
          {"kind"})),
      attached_(registry_.gauge(
          "stoker_control_attached", "Sidecars that are attached to this replica.")),
      certificate_expires_(registry_.gauge(
          "stoker_control_certificate_expires_seconds",
          "Expiry of the certificate that sidecars are shown, as Unix time.")),
      cut_off_(registry_.counter_family(
          "stoker_control_cut_off_total",
          "Connections closed because they did not authenticate in time, or because too many were "
          "waiting.",
          {})),
      reports_(registry_.counter_family(
          "stoker_control_reports_total", "Reports of sidecars by result.", {"result"})),
      reports_absurd_(registry_.counter_family(
          "stoker_profile_refused_total", "Reports of sidecars with out-of-range rates.", {})),
      node_reports_(registry_.counter_family(
          "stoker_node_reports_total", "Reports of node programs by result.", {"result"})),
      sweeps_(registry_.counter_family(
          "stoker_sweeps_total", "Sweeps of nodes by result.", {"result"})),
      tokens_(registry_.counter_family(
          "stoker_control_tokens_total",
          "Tokens of sidecars and node programs by result: verified here (accepted, refused), or "
          "reviewed by the API server.",
          {"result"})),
      events_dropped_(registry_.counter_family(
          "stoker_events_dropped_total", "Kubernetes Events that were not written.", {})),
      reviews_(registry_.counter_family(
          "stoker_webhook_reviews_total",
          "Pods with the label stoker.dev/dataset by outcome: cached, refused, unchanged, failed.",
          {"outcome"})) {
    auto& plans = registry_.histogram_family(
        "stoker_plan_duration_seconds",
        "Duration of a decision about the cluster's cache, from reading the state to sending "
        "grants.",
        {},
        plan_bounds());
    sources_.manager.latest().observe(plans.with({}));
    sources_.manager.for_each([this](Reconciler& reconciler) {
        reconciler.observe(
            {queue_seconds_.with({reconciler.name()}), work_seconds_.with({reconciler.name()})});
    });
}

void OperatorMetrics::raise(
    metrics::CounterFamily& family, metrics::LabelValues labels, double total) {
    const auto counter = family.with(std::move(labels));
    if (const double more = total - counter->value(); more > 0) {
        counter->add(more);
    }
}

void OperatorMetrics::collect_reconciler(const Reconciler& reconciler) {
    const std::string& name = reconciler.name();
    const ReconcilerCounts counts = reconciler.counts();
    raise(reconciles_, {name, "success"}, static_cast<double>(counts.successes));
    raise(reconciles_, {name, "error"}, static_cast<double>(counts.errors));
    raise(reconciles_, {name, "terminal"}, static_cast<double>(counts.terminal));
    active_workers_.with({name})->set(static_cast<double>(counts.active));
    const WorkQueueCounts queue = reconciler.queue_counts();
    const std::size_t normal = queue.waiting - queue.background;
    queue_depth_.with({name, "normal"})->set(static_cast<double>(normal));
    queue_depth_.with({name, "background"})->set(static_cast<double>(queue.background));
    raise(queue_adds_, {name}, static_cast<double>(queue.adds));
    raise(queue_retries_, {name}, static_cast<double>(queue.retries));
    longest_running_.with({name})->set(in_seconds(queue.longest_processing));
    unfinished_.with({name})->set(in_seconds(queue.unfinished));
}

void OperatorMetrics::collect_watch(const std::string& kind, const InformerCounts& counts) {
    raise(watch_lists_, {kind}, static_cast<double>(counts.lists));
    raise(watch_events_, {kind}, static_cast<double>(counts.events));
    raise(watch_troubles_, {kind}, static_cast<double>(counts.troubles));
    raise(unreadable_, {kind}, static_cast<double>(counts.unreadable));
    watch_objects_.with({kind})->set(static_cast<double>(counts.objects));
    watch_synced_.with({kind})->set(counts.synced ? 1 : 0);
    if (counts.last_heard != TimePoint{}) {
        watch_silence_.with({kind})->set(in_seconds(sources_.clock.now() - counts.last_heard));
    }
}

void OperatorMetrics::collect_sidecars() {
    const RegistryCounts counts = sources_.manager.registry().counts();
    attached_.set(static_cast<double>(counts.attached));
    raise(reports_, {"accepted"}, static_cast<double>(counts.reports));
    raise(reports_, {"stale"}, static_cast<double>(counts.reports_stale));
    raise(reports_, {"refused"}, static_cast<double>(counts.reports_refused));
    if (sources_.tokens != nullptr) {
        const TokenCounts tokens = sources_.tokens->counts();
        raise(tokens_, {"accepted"}, static_cast<double>(tokens.accepted_locally));
        raise(tokens_, {"refused"}, static_cast<double>(tokens.refused_locally));
        raise(tokens_, {"reviewed"}, static_cast<double>(tokens.reviewed));
    }
}

void OperatorMetrics::collect_nodes() {
    const NodeCounts reports = sources_.manager.nodes().counts();
    raise(node_reports_, {"accepted"}, static_cast<double>(reports.reports));
    raise(node_reports_, {"refused"}, static_cast<double>(reports.reports_refused));
    const NodeSweeper::Counts sweeps = sources_.manager.sweeps();
    raise(sweeps_, {"succeeded"}, static_cast<double>(sweeps.succeeded));
    raise(sweeps_, {"failed"}, static_cast<double>(sweeps.failed));
}

std::string OperatorMetrics::expose() {
    const std::lock_guard lock(mutex_);
    sources_.manager.for_each(
        [this](const Reconciler& reconciler) { collect_reconciler(reconciler); });
    sources_.cache.for_each_count([this](const std::string& kind, const InformerCounts& counts) {
        collect_watch(kind, counts);
    });
    collect_sidecars();
    collect_nodes();
    process_.collect();
    const bool leads = sources_.elector == nullptr || sources_.elector->leads();
    leader_.with({"stoker-operator"})->set(leads ? 1 : 0);
    if (sources_.certificate != nullptr) {
        certificate_expires_.set(in_seconds(sources_.certificate->expires().time_since_epoch()));
    }
    raise(cut_off_, {}, static_cast<double>(ConnectionGate::cut_off_total()));
    raise(accept_failures_, {}, static_cast<double>(AcceptBackoff::failures()));
    raise(events_dropped_, {}, static_cast<double>(sources_.events.dropped()));
    if (sources_.reviews) {
        for (const auto& [outcome, count] : sources_.reviews()) {
            raise(reviews_, {outcome}, static_cast<double>(count));
        }
    }
    const LatestAllocation::Snapshot allocation = sources_.manager.latest().get();
    raise(reports_absurd_, {}, static_cast<double>(allocation->reports_absurd));
    const NodeProgramView programs = gather_node_programs(sources_.cache, sources_.manager.nodes());
    return registry_.expose() + sources_.api.expose() +
           expose_objects(sources_.cache, *allocation) +
           expose_node_verdicts(sources_.cache, programs, sources_.clock.now());
}

}  // namespace stoker::control
