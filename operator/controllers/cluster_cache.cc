#include "operator/controllers/cluster_cache.h"

#include <utility>

#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/build_job.h"
#include "operator/core/workload/build_packing.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

using Keys = std::vector<std::string>;

constexpr const char* kOptionalKind = "workloads";

// True if the kind is listed, or if it is optional and the API server refused to list it.
template <class T>
bool is_ready(std::string_view what, const Informer<T>& informer) {
    return informer.has_synced() || (what == kOptionalKind && informer.counts().troubles > 0);
}

// Objects of the kind; `label`: only those with the label.
WatchOptions all_of(const ResourceKind& kind, std::string_view label = {}) {
    WatchOptions options;
    options.kind = kind;
    options.scope.label_selector = label;
    return options;
}

// Kueue is optional: without it the list is refused and retried at long intervals.
WatchOptions of_workloads() {
    WatchOptions options = all_of(kinds::kWorkloads, kJobLabel);
    options.may_be_missing = true;
    options.back_off.base = std::chrono::seconds{15};
    options.back_off.reset_after = std::chrono::minutes{5};
    return options;
}

WatchOptions own_pods(const std::string& own_namespace) {
    WatchOptions options = all_of(kinds::kPods, kNodeProgramSelector);
    options.scope.ns = own_namespace;
    return options;
}

template <class T>
Keys namespace_of(const Stored<T>& object) {
    return {object.key.ns};
}

// Key of a child's TrainingJob, from its label.
Keys training_job_of(const ObjectMeta& meta) {
    const std::string& name = value_or_empty(meta.labels, std::string{kJobLabel});
    return name.empty() ? Keys{} : Keys{to_string(ObjectKey{meta.ns, name})};
}

// Key of the Dataset whose uid is in that label of its child.
Keys owner_in(std::string_view label, const ObjectMeta& meta) {
    const std::string& uid = value_or_empty(meta.labels, std::string{label});
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

template <class T>
Informer<T> ClusterCache::watch(
    const Setup& setup, const WatchOptions& options, std::string component) {
    if (component.empty()) {
        component = options.kind.plural;
    }
    const bool one = !options.kind.namespaced || !options.scope.ns.empty() || setup.watched.empty();
    const std::vector<std::string> scopes =
        one ? std::vector<std::string>{options.scope.ns} : setup.watched;
    std::vector<typename Informer<T>::Source> sources;
    for (const std::string& ns : scopes) {
        transports_.push_back(setup.make_transport(component));
        sources.push_back({transports_.back().get(), options});
        sources.back().options.scope.ns = ns;
    }
    return {std::move(sources), read_document<T>, setup.clock, setup.seed + transports_.size()};
}

ClusterCache::ClusterCache(
    const MakeTransport& make_transport,
    const std::string& own_namespace,
    const std::vector<std::string>& watched,
    const Clock& clock,
    std::uint64_t seed)
    : ClusterCache({make_transport, watched, clock, seed}, own_namespace) {}

ClusterCache::ClusterCache(const Setup& setup, const std::string& own_namespace)
    : training_jobs_(watch<TrainingJob>(setup, all_of(kinds::kTrainingJobs))),
      datasets_(watch<Dataset>(setup, all_of(kinds::kDatasets))),
      warmups_(watch<DatasetWarmup>(setup, all_of(kinds::kDatasetWarmups))),
      pools_(watch<CachePool>(setup, all_of(kinds::kCachePools))),
      quotas_(watch<CacheQuota>(setup, all_of(kinds::kCacheQuotas))),
      jobs_(watch<Job>(setup, all_of(kinds::kJobs, kJobLabel))),
      services_(watch<ObjectMeta>(setup, all_of(kinds::kServices, kJobLabel))),
      pods_(watch<Pod>(setup, all_of(kinds::kPods, kJobLabel))),
      filler_jobs_(watch<Job>(setup, all_of(kinds::kJobs, kFillerLabel))),
      filler_pods_(watch<Pod>(setup, all_of(kinds::kPods, kFillerLabel))),
      packing_jobs_(watch<Job>(setup, all_of(kinds::kJobs, kPackingLabel))),
      packing_pods_(watch<Pod>(setup, all_of(kinds::kPods, kPackingLabel))),
      workloads_(watch<Workload>(setup, of_workloads())),
      node_pods_(watch<Pod>(setup, own_pods(own_namespace), "nodepods")),
      nodes_(watch<Node>(setup, all_of(kinds::kNodes))),
      namespaces_(watch<ObjectMeta>(setup, all_of(kinds::kNamespaces))) {
    add_indexes();
}

void ClusterCache::add_indexes() {
    training_jobs_.store().add_index(index::kNamespace, namespace_of<TrainingJob>);
    training_jobs_.store().add_index(index::kDataset, datasets_of);
    datasets_.store().add_index(index::kNamespace, namespace_of<Dataset>);
    warmups_.store().add_index(index::kDataset, [](const Stored<DatasetWarmup>& warmup) {
        return Keys{to_string(ObjectKey{warmup.key.ns, warmup.value.spec.dataset_ref})};
    });
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
    filler_jobs_.store().add_index(index::kFiller, [](const Stored<Job>& job) {
        return owner_in(kFillerLabel, job.value.meta);
    });
    filler_pods_.store().add_index(index::kFiller, [](const Stored<Pod>& pod) {
        return owner_in(kFillerLabel, pod.value.meta);
    });
    packing_jobs_.store().add_index(index::kPacking, [](const Stored<Job>& job) {
        return owner_in(kPackingLabel, job.value.meta);
    });
    packing_pods_.store().add_index(index::kPacking, [](const Stored<Pod>& pod) {
        return owner_in(kPackingLabel, pod.value.meta);
    });
}

template <class Visit>
void ClusterCache::for_each(Visit visit) {
    visit("trainingjobs", training_jobs_);
    visit("datasets", datasets_);
    visit("datasetwarmups", warmups_);
    visit("cachepools", pools_);
    visit("cachequotas", quotas_);
    visit("jobs", jobs_);
    visit("services", services_);
    visit("pods", pods_);
    visit("fillerjobs", filler_jobs_);
    visit("fillerpods", filler_pods_);
    visit("packingjobs", packing_jobs_);
    visit("packingpods", packing_pods_);
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
             [what, &informer] { return is_ready(what, informer); },
             informer.loops()});
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
