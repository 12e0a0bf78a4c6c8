#include "operator/controllers/cluster_cache.h"

#include <utility>

#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

using Keys = std::vector<std::string>;

constexpr const char* kOptionalKind = "workloads";

// Listed; or refused, where the kind need not be there.
template <class T>
bool is_ready(std::string_view what, const Informer<T>& informer) {
    return informer.has_synced() || (what == kOptionalKind && informer.counts().troubles > 0);
}

WatchOptions all_of(const ResourceKind& kind) {
    WatchOptions options;
    options.kind = kind;
    return options;
}

WatchOptions of_training_jobs(const ResourceKind& kind) {
    WatchOptions options = all_of(kind);
    options.scope.label_selector = kJobLabel;
    return options;
}

WatchOptions of_fillers(const ResourceKind& kind) {
    WatchOptions options = all_of(kind);
    options.scope.label_selector = kFillerLabel;
    return options;
}

// Kueue need not be installed: then a list is refused, and asked for again now and then.
WatchOptions of_workloads() {
    WatchOptions options = of_training_jobs(kinds::kWorkloads);
    options.may_be_missing = true;
    options.back_off.base = std::chrono::seconds{15};
    options.back_off.reset_after = std::chrono::minutes{5};
    return options;
}

WatchOptions own_pods(const std::string& own_namespace) {
    WatchOptions options = all_of(kinds::kPods);
    options.scope.ns = own_namespace;
    options.scope.label_selector = kNodeProgramSelector;
    return options;
}

template <class T>
Result<T> read(const Object& object) {
    return read_document<T>(object.raw);
}

template <class T>
Keys namespace_of(const Stored<T>& object) {
    return {object.key.ns};
}

// Key of a child: the TrainingJob in its label.
Keys training_job_of(const ObjectMeta& meta) {
    const std::string& name = value_or_empty(meta.labels, std::string{kJobLabel});
    return name.empty() ? Keys{} : Keys{to_string(ObjectKey{meta.ns, name})};
}

// Key of a filler's Job or pod: the Dataset in its label.
Keys filled_by(const ObjectMeta& meta) {
    const std::string& uid = value_or_empty(meta.labels, std::string{kFillerLabel});
    return uid.empty() ? Keys{} : Keys{to_string(ObjectKey{meta.ns, uid})};
}

Keys datasets_of(const Stored<TrainingJob>& job) {
    Keys keys;
    for (const JobDataset& dataset : job.value.spec.datasets) {
        if (dataset.dataset_ref) {
            keys.push_back(to_string(dataset_key(job.key.ns, dataset)));
        }
    }
    return keys;
}

}  // namespace

ApiTransport& ClusterCache::transport(const MakeTransport& make_transport, const char* component) {
    transports_.push_back(make_transport(component));
    return *transports_.back();
}

template <class T>
std::vector<typename Informer<T>::Source> ClusterCache::sources(
    const MakeTransport& make_transport,
    const std::vector<std::string>& watched,
    const WatchOptions& options) {
    const char* component = options.kind.plural.c_str();
    if (watched.empty()) {
        return {{&transport(make_transport, component), options}};
    }
    std::vector<typename Informer<T>::Source> all;
    for (const std::string& ns : watched) {
        all.push_back({&transport(make_transport, component), options});
        all.back().options.scope.ns = ns;
    }
    return all;
}

ClusterCache::ClusterCache(
    const MakeTransport& make_transport,
    const std::string& own_namespace,
    const std::vector<std::string>& watched,
    const Clock& clock,
    std::uint64_t seed)
    : training_jobs_(
          sources<TrainingJob>(make_transport, watched, all_of(kinds::kTrainingJobs)),
          read<TrainingJob>,
          clock,
          seed),
      datasets_(
          sources<Dataset>(make_transport, watched, all_of(kinds::kDatasets)),
          read<Dataset>,
          clock,
          seed + 1),
      pools_(
          transport(make_transport, "cachepools"),
          all_of(kinds::kCachePools),
          read<CachePool>,
          clock,
          seed + 2),
      quotas_(
          sources<CacheQuota>(make_transport, watched, all_of(kinds::kCacheQuotas)),
          read<CacheQuota>,
          clock,
          seed + 3),
      jobs_(
          sources<Job>(make_transport, watched, of_training_jobs(kinds::kJobs)),
          read<Job>,
          clock,
          seed + 4),
      services_(
          sources<ObjectMeta>(make_transport, watched, of_training_jobs(kinds::kServices)),
          read<ObjectMeta>,
          clock,
          seed + 5),
      pods_(
          sources<Pod>(make_transport, watched, of_training_jobs(kinds::kPods)),
          read<Pod>,
          clock,
          seed + 6),
      filler_jobs_(
          sources<Job>(make_transport, watched, of_fillers(kinds::kJobs)),
          read<Job>,
          clock,
          seed + 10),
      filler_pods_(
          sources<Pod>(make_transport, watched, of_fillers(kinds::kPods)),
          read<Pod>,
          clock,
          seed + 11),
      workloads_(
          sources<Workload>(make_transport, watched, of_workloads()),
          read<Workload>,
          clock,
          seed + 12),
      node_pods_(
          transport(make_transport, "nodepods"),
          own_pods(own_namespace),
          read<Pod>,
          clock,
          seed + 7),
      nodes_(
          transport(make_transport, "nodes"), all_of(kinds::kNodes), read<Node>, clock, seed + 8),
      namespaces_(
          transport(make_transport, "namespaces"),
          all_of(kinds::kNamespaces),
          read<ObjectMeta>,
          clock,
          seed + 9) {
    add_indexes();
}

void ClusterCache::add_indexes() {
    training_jobs_.store().add_index(index::kNamespace, namespace_of<TrainingJob>);
    training_jobs_.store().add_index(index::kDataset, datasets_of);
    datasets_.store().add_index(index::kNamespace, namespace_of<Dataset>);
    quotas_.store().add_index(index::kNamespace, namespace_of<CacheQuota>);
    jobs_.store().add_index(index::kTrainingJob, [](const Stored<Job>& job) {
        return training_job_of(job.value.meta);
    });
    services_.store().add_index(index::kTrainingJob, [](const Stored<ObjectMeta>& service) {
        return training_job_of(service.value);
    });
    pods_.store().add_index(index::kTrainingJob, [](const Stored<Pod>& pod) {
        return training_job_of(pod.value.meta);
    });
    filler_jobs_.store().add_index(
        index::kFiller, [](const Stored<Job>& job) { return filled_by(job.value.meta); });
    filler_pods_.store().add_index(
        index::kFiller, [](const Stored<Pod>& pod) { return filled_by(pod.value.meta); });
}

template <class Visit>
void ClusterCache::for_each(Visit visit) {
    visit("trainingjobs", training_jobs_);
    visit("datasets", datasets_);
    visit("cachepools", pools_);
    visit("cachequotas", quotas_);
    visit("jobs", jobs_);
    visit("services", services_);
    visit("pods", pods_);
    visit("fillerjobs", filler_jobs_);
    visit("fillerpods", filler_pods_);
    visit(kOptionalKind, workloads_);
    visit("nodepods", node_pods_);
    visit("nodes", nodes_);
    visit("namespaces", namespaces_);
}

std::vector<ClusterCache::Watch> ClusterCache::watches() {
    std::vector<Watch> watches;
    for_each([&watches](const char* what, auto& informer) {
        watches.push_back(
            {std::string("watch-") + what,
             [&informer](const std::stop_token& stop) { informer.run(stop); },
             [what, &informer] { return is_ready(what, informer); }});
    });
    return watches;
}

std::vector<std::string> ClusterCache::unsynced() {
    std::vector<std::string> missing;
    for_each([&missing](const char* what, const auto& informer) {
        if (!is_ready(what, informer)) {
            missing.emplace_back(what);
        }
    });
    return missing;
}

void ClusterCache::for_each_count(
    const std::function<void(const std::string& kind, const InformerCounts& counts)>& visit) {
    for_each([&visit](const char* what, const auto& informer) { visit(what, informer.counts()); });
}

bool ClusterCache::has_synced() {
    return unsynced().empty();
}

}  // namespace stoker::control
