#include "operator/controllers/gather.h"

#include <algorithm>
#include <optional>

#include "operator/core/view/guests.h"
#include "operator/core/view/warmups.h"
#include "operator/core/workload/build_filler.h"

namespace stoker::control {

namespace {

bool is_pods_own(const SidecarReport& report, const std::vector<SharedValue<Pod>>& pods) {
    return std::any_of(pods.begin(), pods.end(), [&](const Pod& pod) {
        return pod.meta.name == report.pod && pod.node_name == report.node;
    });
}

// The Datasets that the job's spec names, in any namespace.
std::vector<Dataset> named_datasets(const TrainingJob& job, ClusterCache& cache) {
    std::vector<Dataset> result;
    for (const JobDataset& entry : job.spec.datasets) {
        if (!entry.dataset_ref) {
            continue;
        }
        if (const auto found = cache.datasets().store().get(dataset_key(job.meta.ns, entry))) {
            result.push_back(found->value);
        }
    }
    return result;
}

std::optional<TextMap> labels_of(const std::string& ns, ClusterCache& cache) {
    const auto found = cache.namespaces().store().get({"", ns});
    return found ? std::optional(found->value.labels) : std::nullopt;
}

// The nodes of use.filling that no warm-up fills any more.
std::set<std::string> filled_nodes(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups, const JobUse& use) {
    std::set<std::string> nodes = use.filling;
    for (const FillerPlace& place : open_places(dataset, warmups)) {
        if (place.pool == use.pool.name) {
            nodes.erase(place.node);
        }
    }
    return nodes;
}

bool uses(const JobUse& use, const DatasetReport& report) {
    const std::vector<ResolvedDataset>& datasets = use.datasets->datasets;
    return std::any_of(datasets.begin(), datasets.end(), [&](const ResolvedDataset& dataset) {
        return dataset.name == report.name && dataset.uid == report.dataset_uid;
    });
}

}  // namespace

std::optional<Duration> earliest(std::optional<Duration> a, std::optional<Duration> b) {
    return a && b ? std::min(*a, *b) : (a ? a : b);
}

std::uint64_t first_id(WallTime now) {
    const auto since = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
    constexpr unsigned kIdsPerSecondBits = 20;
    return static_cast<std::uint64_t>(since.count()) << kIdsPerSecondBits;
}

EventSubject subject_of(const ResourceKind& kind, const ObjectMeta& object) {
    return {kind.api_version(), kind.kind, object.key(), object.uid, object.resource_version};
}

ResolvedDatasets readable_datasets(const TrainingJob& job, ClusterCache& cache) {
    return resolve_datasets(job, named_datasets(job, cache), labels_of(job.meta.ns, cache));
}

JobUse gather_use(SharedValue<TrainingJob> job, ClusterCache& cache) {
    const std::string& ns = job->meta.ns;
    ResolvedPool pool = resolve_pool(
        job,
        values_of(cache.pools().store().list()),
        values_of(cache.quotas().store().by_index(index::kNamespace, ns)));
    std::vector<SharedValue<Pod>> pods =
        shared(cache.pods().store().by_index(index::kTrainingJob, to_string(job->meta.key())));
    ResolvedDatasets datasets = readable_datasets(job, cache);
    return {std::move(job), std::move(datasets), std::move(pool), std::move(pods)};
}

std::vector<JobUse> gather_fillers(const Dataset& dataset, ClusterCache& cache) {
    std::map<std::string, JobUse> by_pool;
    const std::string key = to_string(ObjectKey{dataset.meta.ns, dataset.meta.uid});
    for (const auto& pod : cache.filler_pods().store().by_index(index::kFiller, key)) {
        const std::string pool = place_of(pod->value.meta).pool;
        if (cache.pools().store().get({"", pool}) && !dataset.spec.sources.empty()) {
            by_pool[pool].pods.push_back(shared(pod));
        }
    }
    std::vector<JobUse> result;
    for (auto& [pool, use] : by_pool) {
        ObjectMeta& meta = use.job.edit().meta;
        meta.ns = dataset.meta.ns;
        meta.name = filler_training_job(dataset, pool);
        meta.uid = dataset.meta.uid;
        use.datasets.edit().datasets = {resolve_for_filler(dataset)};
        use.pool.name = pool;
        use.filler = true;
        result.push_back(std::move(use));
    }
    return result;
}

// "filler/<dataset>/<pool>" has the full name of the Dataset unless the name is very long.
StoredPtr<Dataset> find_filled(const ObjectKey& filler, ClusterCache& cache) {
    const std::size_t begin = filler.name.find('/') + 1;
    const std::string name = filler.name.substr(begin, filler.name.find('/', begin) - begin);
    const auto named = cache.datasets().store().get({filler.ns, name});
    if (named && is_filler_of(filler.name, name)) {
        return named;
    }
    if (!may_be_shortened(name)) {
        return nullptr;
    }
    for (const auto& dataset : cache.datasets().store().by_index(index::kNamespace, filler.ns)) {
        if (is_filler_of(filler.name, dataset->key.name)) {
            return dataset;
        }
    }
    return nullptr;
}

std::vector<std::string> pool_paths(ClusterCache& cache) {
    std::vector<std::string> result;
    for (const auto& pool : cache.pools().store().list()) {
        result.push_back(pool->value.spec.host_path);
    }
    return result;
}

std::vector<SidecarReport> believable_reports(const JobUse& use, SidecarRegistry& registry) {
    std::vector<SidecarReport> reports = registry.of_job(use.job->meta.key());
    std::erase_if(reports, [&](const SidecarReport& report) {
        return report.training_job_uid != uid_in_pods(use.job) || !is_pods_own(report, use.pods);
    });
    for (SidecarReport& report : reports) {
        report.training_job_uid = use.job->meta.uid;
        std::erase_if(
            report.datasets, [&](const DatasetReport& dataset) { return !uses(use, dataset); });
        drop_directory_claims(use, report);
    }
    return reports;
}

std::vector<SidecarReport> reports_on_datasets(const JobUse& use, SidecarRegistry& registry) {
    std::vector<SidecarReport> reports = believable_reports(use, registry);
    for (SidecarReport& report : reports) {
        drop_listing_claims(use, report);
    }
    return reports;
}

std::optional<std::string> living_pod(const ObjectKey& pod, ClusterCache& cache) {
    for (Informer<Pod>* pods : {&cache.pods(), &cache.filler_pods(), &cache.node_pods()}) {
        if (const auto stored = pods->store().get(pod)) {
            return stored->value.meta.deleting_since ? std::nullopt : std::optional(stored->uid);
        }
    }
    return std::nullopt;
}

NodeProgramView gather_node_programs(ClusterCache& cache, NodeRegistry& nodes) {
    NodeProgramView view;
    view.reports = nodes.all();
    view.listening_since = nodes.listening_since();
    for (const auto& pod : cache.node_pods().store().list()) {
        view.nodes_with_pod.insert(pod->value.node_name);
    }
    return view;
}

ClusterView gather_cluster(
    ClusterCache& cache,
    SidecarRegistry& registry,
    NodeRegistry& nodes,
    std::uint32_t grant_seconds,
    WallTime now) {
    ClusterView view;
    view.pools = values_of(cache.pools().store().list());
    view.quotas = values_of(cache.quotas().store().list());
    view.nodes = values_of(cache.nodes().store().list());
    view.datasets = values_of(cache.datasets().store().list());
    view.warmups = values_of(cache.warmups().store().list());
    const auto add = [&](JobUse use) {
        std::vector<SidecarReport> reports = reports_on_datasets(use, registry);
        view.reports.insert(view.reports.end(), reports.begin(), reports.end());
        view.jobs.push_back(std::move(use));
    };
    for (const auto& job : cache.training_jobs().store().list()) {
        add(gather_use(shared(job), cache));
    }
    for (const Dataset& dataset : view.datasets) {
        for (JobUse& use : gather_fillers(dataset, cache)) {
            use.filling = filling_nodes(
                dataset, use.pool.name, view.warmups, reports_on_datasets(use, registry), now);
            use.filled = filled_nodes(dataset, view.warmups, use);
            add(std::move(use));
        }
    }
    view.grant_seconds = grant_seconds;
    view.programs = gather_node_programs(cache, nodes);
    return view;
}

}  // namespace stoker::control
