#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shared_value.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/node_fitness.h"
#include "operator/kube/event.h"
#include "operator/kube/resource_kind.h"
#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/sidecar_registry.h"

// Cache and registry reads that several controllers need. No I/O: everything is in memory.
namespace stoker::control {

// Retry delay while the cache lacks our last write; the write's event usually wakes us earlier.
inline constexpr Duration kCacheBehind = std::chrono::milliseconds{200};

// The earlier of two times.
std::optional<Duration> earliest(std::optional<Duration> a, std::optional<Duration> b);

// First id of an operator that starts now. It differs from earlier operators' ids, whose results
// may still arrive.
std::uint64_t first_id(WallTime now);

// Event subject for an object of that kind.
EventSubject subject_of(const ResourceKind& kind, const ObjectMeta& object);

// Copies of the values of stored objects.
template <class T>
std::vector<T> values_of(const std::vector<StoredPtr<T>>& objects) {
    std::vector<T> values;
    values.reserve(objects.size());
    for (const StoredPtr<T>& object : objects) {
        values.push_back(object->value);
    }
    return values;
}

// The value of a stored object, shared with the store, not copied.
template <class T>
SharedValue<T> shared(const StoredPtr<T>& object) {
    return SharedValue<T>(std::shared_ptr<const T>(object, &object->value));
}

// The values of stored objects, shared with the store, not copied.
template <class T>
std::vector<SharedValue<T>> shared(const std::vector<StoredPtr<T>>& objects) {
    std::vector<SharedValue<T>> values;
    values.reserve(objects.size());
    for (const StoredPtr<T>& object : objects) {
        values.push_back(shared(object));
    }
    return values;
}

// The Datasets that the job's spec names and that it may read.
ResolvedDatasets readable_datasets(const TrainingJob& job, ClusterCache& cache);

// The job with its pods and the objects that its spec names.
JobUse gather_use(SharedValue<TrainingJob> job, ClusterCache& cache);

// The directories of all CachePools.
std::vector<std::string> pool_paths(ClusterCache& cache);

// The fillers of a Dataset, one JobUse for each pool where it has pods. Their pods carry the
// Dataset's kFillerLabel and are in its namespace.
std::vector<JobUse> gather_fillers(const Dataset& dataset, ClusterCache& cache);

// The Dataset of a filler, by the name in its reports; nullptr: there is none.
StoredPtr<Dataset> find_filled(const ObjectKey& filler, ClusterCache& cache);

// The job's trustworthy reports. A sidecar has proved which pod it is; the rest of its report is
// unverified. So a report counts only if it names this job's uid (or the uid of the workload that
// the job describes, which is then replaced by the job's), and its pod carries the job's label and
// runs on the reported node. A dataset entry counts only if the dataset is in the job's own
// namespace, or is shared with it or was when its attempt began. Claims about the directory of
// another namespace's dataset are dropped (drop_directory_claims()).
std::vector<SidecarReport> believable_reports(const JobUse& use, SidecarRegistry& registry);

// As believable_reports(), for statuses of Datasets: also drops a guest's claims about an origin
// (drop_listing_claims()).
std::vector<SidecarReport> reports_on_datasets(const JobUse& use, SidecarRegistry& registry);

// The uid of a pod of a TrainingJob, a filler or a node program. nullopt: the cache has no such pod,
// or the pod is being deleted.
std::optional<std::string> living_pod(const ObjectKey& pod, ClusterCache& cache);

// Reports and pods of the node programs.
NodeProgramView gather_node_programs(ClusterCache& cache, NodeRegistry& nodes);

// The whole cluster, as input of the allocation planner.
ClusterView gather_cluster(
    ClusterCache& cache,
    SidecarRegistry& registry,
    NodeRegistry& nodes,
    std::uint32_t grant_seconds,
    WallTime now);

}  // namespace stoker::control
