#include "operator/controllers/object_metrics.h"

#include <charconv>
#include <limits>

#include "common/metrics/metrics.h"
#include "operator/controllers/gather.h"
#include "operator/core/status/judge_peers.h"
#include "operator/core/workload/build_filler.h"

namespace stoker::control {

namespace {

using metrics::GaugeFamily;
using metrics::LabelValues;
using metrics::Registry;

double number(std::int64_t count) {
    return static_cast<double>(count);
}

// Parses a number of a status: "0.62". 0 if it is invalid.
double number(const std::string& text) {
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

class JobMetrics {
public:
    explicit JobMetrics(Registry& registry)
        : running_(family(registry, "stoker_job_running", "1 while all ranks of the job run.")),
          wanted_(
              family(registry, "stoker_job_wanted_bytes", "Cache bytes that the job could use.")),
          granted_(
              family(registry, "stoker_job_granted_bytes", "Cache bytes that the job may keep.")),
          borrowed_(family(
              registry, "stoker_job_borrowed_bytes", "Granted bytes that other namespaces lend.")),
          used_(family(
              registry, "stoker_job_used_bytes", "Bytes of the job's datasets on its nodes.")),
          hits_(family(
              registry,
              "stoker_job_hit_ratio",
              "Share of the bytes read that did not cross the link to the origin for that read.")),
          origin_(family(
              registry,
              "stoker_job_origin_bytes_per_second",
              "Rate at which the job reads from the origin now.")),
          saved_(family(
              registry,
              "stoker_job_saved_seconds_per_epoch",
              "Predicted seconds that the cache saves per epoch.")),
          marginal_(family(
              registry,
              "stoker_job_marginal_seconds_per_gib",
              "Predicted seconds per epoch that one more GiB would save.")),
          worth_(family(
              registry,
              "stoker_job_saved_gpu_seconds_per_gib_hour",
              "GPU-seconds that each cached GiB saves in an hour.")) {}

    void add(const TrainingJob& job) {
        const LabelValues labels{job.meta.ns, job.meta.name};
        running_.with(labels)->set(is_true(job.status.conditions, "Running") ? 1 : 0);
        if (!job.status.cache) {
            return;
        }
        const CacheStatus& cache = *job.status.cache;
        wanted_.with(labels)->set(number(cache.wanted_bytes));
        granted_.with(labels)->set(number(cache.allocated_bytes));
        borrowed_.with(labels)->set(number(cache.borrowed_bytes));
        used_.with(labels)->set(number(cache.used_bytes));
        hits_.with(labels)->set(number(cache.hit_ratio));
        origin_.with(labels)->set(number(cache.origin_bytes_per_second));
        if (cache.benefit) {
            saved_.with(labels)->set(number(cache.benefit->seconds_saved_per_epoch));
            marginal_.with(labels)->set(number(cache.benefit->marginal_per_gib));
            worth_.with(labels)->set(number(cache.benefit->gpu_seconds_per_gib_hour));
        }
    }

private:
    static GaugeFamily& family(Registry& registry, const char* name, const char* help) {
        return registry.gauge_family(name, help, {"namespace", "training_job"});
    }

    GaugeFamily& running_;
    GaugeFamily& wanted_;
    GaugeFamily& granted_;
    GaugeFamily& borrowed_;
    GaugeFamily& used_;
    GaugeFamily& hits_;
    GaugeFamily& origin_;
    GaugeFamily& saved_;
    GaugeFamily& marginal_;
    GaugeFamily& worth_;
};

void add_profiles(const std::map<ObjectKey, JobProfile>& profiles, Registry& registry) {
    const std::vector<std::string> labels{"namespace", "training_job"};
    GaugeFamily& ingest = registry.gauge_family(
        "stoker_job_ingest_bytes_per_second",
        "Rate at which the job would read if its data were never late (f*).",
        labels);
    GaugeFamily& origin = registry.gauge_family(
        "stoker_job_origin_capacity_bytes_per_second",
        "Rate at which the origin delivers to the job while the job waits for it.",
        labels);
    GaugeFamily& waits = registry.gauge_family(
        "stoker_job_wait_ratio", "Share of their time that the trainers wait for data.", labels);
    GaugeFamily& bound = registry.gauge_family(
        "stoker_job_compute_bound", "1 if a cache would not make the job faster.", labels);
    GaugeFamily& sure = registry.gauge_family(
        "stoker_job_profile_confidence_ratio", "Confidence in the job's profile, 0 to 1.", labels);
    for (const auto& [job, profile] : profiles) {
        const LabelValues values{job.ns, job.name};
        ingest.with(values)->set(profile.ingest_rate);
        origin.with(values)->set(profile.origin_rate);
        waits.with(values)->set(profile.wait_share);
        bound.with(values)->set(profile.verdict == ProfileVerdict::kComputeBound ? 1 : 0);
        sure.with(values)->set(profile.confidence);
    }
}

void add_datasets(const std::vector<Dataset>& datasets, Registry& registry) {
    const std::vector<std::string> labels{"namespace", "dataset"};
    GaugeFamily& total =
        registry.gauge_family("stoker_dataset_bytes", "Size of the dataset at the origin.", labels);
    GaugeFamily& cached = registry.gauge_family(
        "stoker_dataset_cached_bytes", "Bytes of the dataset on all nodes together.", labels);
    GaugeFamily& ready =
        registry.gauge_family("stoker_dataset_ready", "1 if the origin could be listed.", labels);
    GaugeFamily& peers = registry.gauge_family(
        "stoker_dataset_peer_nodes",
        "Nodes that fetch samples of the dataset from each other. Absent below 2.",
        labels);
    GaugeFamily& cut = registry.gauge_family(
        "stoker_dataset_peers_unreachable",
        "1 if a node cannot connect to other nodes for samples and has never got one.",
        labels);
    for (const Dataset& dataset : datasets) {
        const LabelValues values{dataset.meta.ns, dataset.meta.name};
        total.with(values)->set(number(dataset.status.total_bytes.value_or(0)));
        cached.with(values)->set(number(dataset.status.cached_bytes));
        ready.with(values)->set(is_true(dataset.status.conditions, "Ready") ? 1 : 0);
        const Condition* reachable =
            find_condition(dataset.status.conditions, std::string{kPeersReachable});
        const bool is_cut = reachable != nullptr && reachable->status == ConditionStatus::kFalse;
        if (dataset.status.peers) {
            peers.with(values)->set(number(dataset.status.peers->nodes));
        }
        cut.with(values)->set(is_cut ? 1 : 0);
    }
}

void add_states(ClusterCache& cache, Registry& registry) {
    GaugeFamily& jobs = registry.gauge_family(
        "stoker_jobs",
        "TrainingJobs by state, the column STATE; Unknown: not yet seen.",
        {"state"});
    for (const char* state : {"Starting", "Running", "Complete", "Failed"}) {
        jobs.with({state});  // series that alerts and dashboards sum exist from the first scrape
    }
    for (const auto& job : cache.training_jobs().store().list()) {
        const Condition* finished = find_condition(job->value.status.conditions, "Finished");
        jobs.with({finished == nullptr ? "Unknown" : finished->reason})->add(1);
    }
}

void add_warmups(ClusterCache& cache, Registry& registry) {
    GaugeFamily& warmups = registry.gauge_family(
        "stoker_warmups", "DatasetWarmups by state, the column STATE.", {"state"});
    GaugeFamily& lacking = registry.gauge_family(
        "stoker_warmup_remaining_bytes",
        "Bytes that warm-ups still have to fetch, summed by state.",
        {"state"});
    GaugeFamily& warmed = registry.gauge_family(
        "stoker_warmup_warmed_bytes",
        "Bytes already on the nodes of those that warm-ups ordered, summed by state.",
        {"state"});
    for (const char* state : {"Pending", "Running", "Failed"}) {
        warmups.with({state});
    }
    for (const auto& warmup : cache.warmups().store().list()) {
        const DatasetWarmupStatus& status = warmup->value.status;
        const std::string& told = status.columns.state;
        const LabelValues state{told.empty() ? "Unknown" : told};
        warmups.with(state)->add(1);
        lacking.with(state)->add(number(status.total_bytes - status.bytes_warmed));
        warmed.with(state)->add(number(status.bytes_warmed));
    }
}

// A filler is ready if its Job runs and its pod is ready.
void add_fillers(ClusterCache& cache, Registry& registry) {
    GaugeFamily& fillers = registry.gauge_family(
        "stoker_fillers",
        "Sidecars without a trainer that fill a Dataset for jobs of other namespaces.",
        {"namespace", "dataset", "ready"});
    for (const auto& job : cache.filler_jobs().store().list()) {
        const ObjectMeta& meta = job->value.meta;
        const std::string dataset =
            value_or_empty(meta.annotations, std::string{kFillerDatasetAnnotation});
        fillers.with({meta.ns, dataset, job->value.ready > 0 ? "true" : "false"})->add(1);
    }
}

void add_pools(const std::vector<CachePool>& pools, Registry& registry) {
    const std::vector<std::string> labels{"pool"};
    GaugeFamily& capacity = registry.gauge_family(
        "stoker_pool_capacity_bytes", "Cache bytes of the pool's ready nodes.", labels);
    GaugeFamily& granted =
        registry.gauge_family("stoker_pool_granted_bytes", "Bytes granted to jobs.", labels);
    GaugeFamily& used =
        registry.gauge_family("stoker_pool_used_bytes", "Cached bytes on the nodes.", labels);
    GaugeFamily& ready = registry.gauge_family(
        "stoker_pool_nodes_ready", "Nodes of the pool that are ready.", labels);
    GaugeFamily& nodes =
        registry.gauge_family("stoker_pool_nodes", "Nodes with the pool's labels.", labels);
    for (const CachePool& pool : pools) {
        const LabelValues values{pool.meta.name};
        capacity.with(values)->set(number(pool.status.capacity_bytes));
        granted.with(values)->set(number(pool.status.granted_bytes));
        used.with(values)->set(number(pool.status.used_bytes));
        ready.with(values)->set(number(pool.status.nodes_ready));
        nodes.with(values)->set(number(pool.status.nodes_total));
    }
}

class QuotaMetrics {
public:
    explicit QuotaMetrics(Registry& registry)
        : nominal_(
              family(registry, "stoker_quota_nominal_bytes", "Nominal quota of the namespace.")),
          borrowing_limit_(family(
              registry,
              "stoker_quota_borrowing_limit_bytes",
              "Bytes that the namespace may borrow beyond its nominal quota.")),
          lending_limit_(family(
              registry,
              "stoker_quota_lending_limit_bytes",
              "Bytes of the nominal quota that other namespaces may borrow.")),
          used_(family(
              registry, "stoker_quota_used_bytes", "Bytes charged to the namespace's datasets.")),
          borrowed_(family(
              registry,
              "stoker_quota_borrowed_bytes",
              "Bytes that the namespace uses beyond its nominal quota.")),
          lent_(family(
              registry,
              "stoker_quota_lent_bytes",
              "Bytes of the nominal quota that other namespaces use.")),
          share_(family(
              registry,
              "stoker_quota_weighted_share_ratio",
              "Used bytes as a share of the nominal quota.")),
          overdue_(family(
              registry,
              "stoker_quota_reclaim_overdue",
              "1 while a sidecar keeps bytes that it had to return before the grace period "
              "ended.")) {}

    void add(const CacheQuota& quota) {
        const LabelValues labels{quota.meta.ns, quota.meta.name, quota.spec.pool_ref};
        const auto bytes = [](Bytes count) { return static_cast<double>(count.count()); };
        nominal_.with(labels)->set(bytes(quota.spec.nominal_quota));
        const CacheQuotaSpec& spec = quota.spec;
        borrowing_limit_.with(labels)->set(
            spec.borrowing_limit ? bytes(*spec.borrowing_limit)
                                 : std::numeric_limits<double>::infinity());
        lending_limit_.with(labels)->set(bytes(spec.lending_limit.value_or(spec.nominal_quota)));
        used_.with(labels)->set(number(quota.status.used_bytes));
        borrowed_.with(labels)->set(number(quota.status.borrowed_bytes));
        lent_.with(labels)->set(number(quota.status.lent_bytes));
        share_.with(labels)->set(number(quota.status.weighted_share) / 1000);
        const Condition* enforced = find_condition(quota.status.conditions, "Enforced");
        const bool late = enforced != nullptr && enforced->status == ConditionStatus::kFalse;
        overdue_.with(labels)->set(late ? 1 : 0);
    }

private:
    static GaugeFamily& family(Registry& registry, const char* name, const char* help) {
        return registry.gauge_family(name, help, {"namespace", "quota", "pool"});
    }

    GaugeFamily& nominal_;
    GaugeFamily& borrowing_limit_;
    GaugeFamily& lending_limit_;
    GaugeFamily& used_;
    GaugeFamily& borrowed_;
    GaugeFamily& lent_;
    GaugeFamily& share_;
    GaugeFamily& overdue_;
};

}  // namespace

std::string expose_objects(ClusterCache& cache, const Allocation& allocation) {
    Registry registry;
    JobMetrics jobs(registry);
    for (const auto& job : cache.training_jobs().store().list()) {
        jobs.add(job->value);
    }
    add_profiles(allocation.profiles, registry);
    add_datasets(values_of(cache.datasets().store().list()), registry);
    add_states(cache, registry);
    add_warmups(cache, registry);
    add_fillers(cache, registry);
    add_pools(values_of(cache.pools().store().list()), registry);
    QuotaMetrics quotas(registry);
    for (const auto& quota : cache.quotas().store().list()) {
        quotas.add(quota->value);
    }
    return registry.expose();
}

std::string expose_node_verdicts(
    ClusterCache& cache, const NodeProgramView& programs, TimePoint now) {
    Registry registry;
    GaugeFamily& verdicts = registry.gauge_family(
        "stoker_pool_node_verdict",
        "Nodes of the pool by the verdict on them; only the leader exposes it.",
        {"pool", "verdict"});
    if (!programs.listening_since) {
        return {};
    }
    const std::vector<Node> nodes = values_of(cache.nodes().store().list());
    for (const auto& pool : cache.pools().store().list()) {
        for (const NodeVerdict& it : judge_nodes(pool->value, nodes, programs, now)) {
            verdicts.with({pool->key.name, std::string{to_string(it.fitness)}})->add(1);
        }
    }
    return registry.expose();
}

}  // namespace stoker::control
