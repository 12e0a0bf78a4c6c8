#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/job.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"
#include "operator/api/workload.h"
#include "operator/kube/transport.h"
#include "operator/runtime/informer.h"

namespace stoker::control {

// The pods of the node programs' DaemonSet, in the operator's own namespace.
inline constexpr const char* kNodeProgramSelector = "stoker.dev/component=node";

// Names of the stores' indexes.
namespace index {

inline constexpr const char* kNamespace = "namespace";  // TrainingJob, Dataset, CacheQuota
inline constexpr const char* kTrainingJob =
    "trainingJob";  // Job, Pod, Service: "ns/name" of their TrainingJob
inline constexpr const char* kDataset =
    "dataset";  // TrainingJob, DatasetWarmup: "ns/name" of its Datasets

inline constexpr const char* kFiller = "filler";  // filler Job, filler Pod: "ns/uid" of the Dataset
inline constexpr const char* kPacking = "packing";  // packing Job, its Pod: likewise

}  // namespace index

// Everything that the operator watches, in sync with the API server. Thread-safe once started.
class ClusterCache {
public:
    // One transport per watch, so that none waits for another. `component` names it in the
    // User-Agent.
    using MakeTransport =
        std::function<std::unique_ptr<ApiTransport>(const std::string& component)>;

    // `watched`: the relevant namespaces, with a watch for each; empty: all. Cluster-scoped objects
    // and the pods of `own_namespace` are always watched.
    ClusterCache(
        const MakeTransport& make_transport,
        const std::string& own_namespace,
        const std::vector<std::string>& watched,
        const Clock& clock,
        std::uint64_t seed);

    ClusterCache(const ClusterCache&) = delete;
    ClusterCache& operator=(const ClusterCache&) = delete;

    // One watch: `run` blocks its thread until a stop is requested.
    struct Watch {
        std::string name;
        std::function<void(const std::stop_token& stop)> run;
        std::function<bool()> has_synced;
        std::vector<WatchLoop*> loops;  // what `run` drives; valid as long as the cache
    };

    // All watches, to run in parallel. Add the handlers first.
    std::vector<Watch> watches();

    // True if every first list is in its store and every handler has seen it; the list of Kueue's
    // Workloads may have been refused instead.
    [[nodiscard]] bool has_synced();

    // Plurals of kinds that have not been listed yet, for the readiness message.
    [[nodiscard]] std::vector<std::string> unsynced();

    // Calls `visit` with each watch's plural and counts.
    void for_each_count(
        const std::function<void(const std::string& kind, const InformerCounts& counts)>& visit);

    Informer<TrainingJob>& training_jobs() { return training_jobs_; }

    Informer<Dataset>& datasets() { return datasets_; }

    Informer<DatasetWarmup>& warmups() { return warmups_; }

    Informer<CachePool>& pools() { return pools_; }

    Informer<CacheQuota>& quotas() { return quotas_; }

    // Jobs, Services and pods of TrainingJobs.
    Informer<Job>& jobs() { return jobs_; }

    Informer<ObjectMeta>& services() { return services_; }

    Informer<Pod>& pods() { return pods_; }

    // Jobs and pods of Datasets' fillers (operator/core/workload/build_filler.h).
    Informer<Job>& filler_jobs() { return filler_jobs_; }

    Informer<Pod>& filler_pods() { return filler_pods_; }

    // Jobs and pods that pack Datasets (operator/core/workload/build_packing.h).
    Informer<Job>& packing_jobs() { return packing_jobs_; }

    Informer<Pod>& packing_pods() { return packing_pods_; }

    // Kueue's Workloads of TrainingJobs. Does not sync while Kueue is not installed; callers wait
    // only for its first response.
    Informer<Workload>& workloads() { return workloads_; }

    // The pods of the node programs.
    Informer<Pod>& node_pods() { return node_pods_; }

    Informer<Node>& nodes() { return nodes_; }

    // Namespaces; their labels decide which Datasets are shared with them.
    Informer<ObjectMeta>& namespaces() { return namespaces_; }

private:
    struct Setup {
        const MakeTransport& make_transport;
        const std::vector<std::string>& watched;
        const Clock& clock;
        std::uint64_t seed;  // each watch gets the next seed
    };

    ClusterCache(const Setup& setup, const std::string& own_namespace);

    // One watch per watched namespace, or one of all. `component`: as for MakeTransport;
    // empty: the kind's plural.
    template <class T>
    Informer<T> watch(const Setup& setup, const WatchOptions& options, std::string component = {});
    void add_indexes();

    // Calls `visit(plural, informer)` for each watch.
    template <class Visit>
    void for_each(Visit visit);

    std::vector<std::unique_ptr<ApiTransport>> transports_;
    Informer<TrainingJob> training_jobs_;
    Informer<Dataset> datasets_;
    Informer<DatasetWarmup> warmups_;
    Informer<CachePool> pools_;
    Informer<CacheQuota> quotas_;
    Informer<Job> jobs_;
    Informer<ObjectMeta> services_;
    Informer<Pod> pods_;
    Informer<Job> filler_jobs_;
    Informer<Pod> filler_pods_;
    Informer<Job> packing_jobs_;
    Informer<Pod> packing_pods_;
    Informer<Workload> workloads_;
    Informer<Pod> node_pods_;
    Informer<Node> nodes_;
    Informer<ObjectMeta> namespaces_;
};

}  // namespace stoker::control
