#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/kubectl_stoker/kubectl.h"
#include "cli/kubectl_stoker/options.h"
#include "cli/kubectl_stoker/report.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/snapshot.h"
#include "operator/kube/access.h"
#include "operator/kube/client.h"
#include "operator/kube/rest_transport.h"

namespace stoker::cli {

// The commands' reads of a cluster, with the rights of the user. Errors say what was refused and
// what to do; kForbidden: RBAC refused; kNotFound: no such object. Not thread-safe.
class Cluster {
public:
    // Starts the user's kubectl; sends no request yet. `clock` must outlive it. Errors: kNotFound
    // (no kubectl), kUnavailable.
    static Result<std::unique_ptr<Cluster>> open(const ConnectOptions& options, const Clock& clock);

    Result<control::TrainingJob> job(const control::ObjectKey& key);
    // List objects of one kind. An empty namespace means all namespaces.
    Result<std::vector<control::TrainingJob>> jobs(const std::string& ns);
    Result<std::vector<control::CacheQuota>> quotas(const std::string& ns);
    Result<std::vector<control::CachePool>> pools();
    Result<control::Dataset> dataset(const control::ObjectKey& key);
    Result<std::vector<control::Dataset>> datasets(const std::string& ns);

    Result<control::Pod> pod(const control::ObjectKey& key);
    // The pods of a TrainingJob, by rank and name.
    Result<std::vector<control::Pod>> pods_of(const control::ObjectKey& job);
    // The Events about a TrainingJob, by time.
    Result<std::vector<ReportEvent>> events_of(const control::ObjectKey& job);

    // Asks the leading operator through the API server. kUnavailable: there is no leader, it has no
    // plan yet, or the API server cannot reach it; kNotFound: there is no operator, or it does not
    // serve this page.
    Result<control::AllocationSnapshot> snapshot();

private:
    Cluster(std::unique_ptr<Kubectl> kubectl, const ConnectOptions& options, const Clock& clock);

    template <class T>
    Result<std::vector<T>> list(const control::ResourceKind& kind, const std::string& ns);
    template <class T>
    Result<std::vector<T>> list(const control::ResourceKind& kind, const control::Scope& scope);
    Result<std::string> find_leader();
    // Token for the operator's debug pages; requested once and kept.
    Result<std::string> debug_token();
    Result<control::AllocationSnapshot> ask(const std::string& pod);
    static Error refusal(
        const std::string& pod, const std::string& what, const control::ApiResponse& response);

    ConnectOptions options_;
    std::unique_ptr<Kubectl> kubectl_;
    control::AccessSource access_;
    control::RestTransport transport_;
    std::unique_ptr<control::ApiClient> client_;
    std::string debug_token_;
};

// The pod name in the `holder` of the operator's Lease: "stoker-operator-7d4" for
// "stoker-operator-7d4_00c0ffee".
std::string pod_of_holder(const std::string& holder);

// The ServiceAccount that may read the operator's debug pages. The chart derives its name from the
// Lease's: "stoker-explain" for "stoker-operator".
std::string explain_account_of(const std::string& lease_name);

}  // namespace stoker::cli
