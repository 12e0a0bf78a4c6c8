#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/controllers/cluster_cache.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/node_fitness.h"
#include "operator/kube/event.h"
#include "operator/kube/resource_kind.h"
#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/sidecar_registry.h"

// Reads of cache and registry that more than one controller needs. No I/O: everything is in memory.
namespace stoker::control {

// The cache does not show our last write yet; its event wakes us anyway.
inline constexpr Duration kCacheBehind = std::chrono::milliseconds{200};

// The next time of two.
std::optional<Duration> earliest(std::optional<Duration> a, std::optional<Duration> b);

// First id of an operator that begins now. Ids of an operator before it differ: results for them
// may still come.
std::uint64_t first_id(WallTime now);

// For an Event about an object of that kind.
EventSubject subject_of(const ResourceKind& kind, const ObjectMeta& object);

// The values of stored objects.
template <class T>
std::vector<T> values_of(const std::vector<StoredPtr<T>>& objects) {
    std::vector<T> values;
    values.reserve(objects.size());
    for (const StoredPtr<T>& object : objects) {
        values.push_back(object->value);
    }
    return values;
}

// The Datasets that the job's spec names, as far as it may read them.
ResolvedDatasets readable_datasets(const TrainingJob& job, ClusterCache& cache);

// The job with what its spec names and its pods.
JobUse gather_use(const TrainingJob& job, ClusterCache& cache);

// The directories of all CachePools.
std::vector<std::string> pool_paths(ClusterCache& cache);

// The fillers of a Dataset, one JobUse for each pool where it has pods. Their pods carry the
// Dataset's kFillerLabel and are in its namespace.
std::vector<JobUse> gather_fillers(const Dataset& dataset, ClusterCache& cache);

// The job's reports, as far as they can be believed. A sidecar proved that it is the pod that it
// claims to be; the rest is its word. So a report counts only if it is about this very job (uid),
// and its pod carries the job's label and runs on the node that it names; and of a report only what
// it says about datasets that the job uses: those of its own namespace, and those of another that
// are shared with it, or were when its attempt began. These last are not believed about
// the directory (drop_directory_claims()).
std::vector<SidecarReport> believable_reports(const JobUse& use, SidecarRegistry& registry);

// The same, for those who ask about datasets and not about the job: what a guest says of an origin
// is left out, too (drop_listing_claims()).
std::vector<SidecarReport> reports_on_datasets(const JobUse& use, SidecarRegistry& registry);

// Reports and pods of the node programs.
NodeProgramView gather_node_programs(ClusterCache& cache, NodeRegistry& nodes);

// The whole cluster, for the planner of grants.
ClusterView gather_cluster(
    ClusterCache& cache,
    SidecarRegistry& registry,
    NodeRegistry& nodes,
    std::uint32_t grant_seconds);

}  // namespace stoker::control
