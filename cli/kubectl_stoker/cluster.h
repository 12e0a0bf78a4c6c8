#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/kubectl_stoker/kubectl.h"
#include "cli/kubectl_stoker/options.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/snapshot.h"
#include "operator/kube/access.h"
#include "operator/kube/client.h"
#include "operator/kube/rest_transport.h"

namespace stoker::cli {

// What the commands read of a cluster, with the rights of whoever runs them. Errors say what was
// refused and what to do; kForbidden where RBAC refused, kNotFound where the thing is not there.
// Not thread-safe.
class Cluster {
public:
    // Starts the user's kubectl; asks nobody yet. `clock` must outlive it. Errors: kNotFound (no
    // kubectl), kUnavailable.
    static Result<std::unique_ptr<Cluster>> open(const ConnectOptions& options, const Clock& clock);

    Result<control::TrainingJob> job(const control::ObjectKey& key);
    // An empty namespace means all of them.
    Result<std::vector<control::TrainingJob>> jobs(const std::string& ns);
    Result<std::vector<control::CacheQuota>> quotas(const std::string& ns);
    Result<std::vector<control::CachePool>> pools();

    // From the operator that leads, through the API server. kUnavailable: nobody leads, it has
    // decided nothing yet, or the API server cannot reach it; kNotFound: no operator there, or one
    // that does not answer this.
    Result<control::AllocationSnapshot> snapshot();

private:
    Cluster(std::unique_ptr<Kubectl> kubectl, const ConnectOptions& options, const Clock& clock);

    template <class T>
    Result<std::vector<T>> list(const control::ResourceKind& kind, const std::string& ns);
    Result<std::string> find_leader();
    // For the operator's debug pages; got once.
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

// What `holder` of the operator's Lease says about its pod: "stoker-operator-7d4_00c0ffee" is
// "stoker-operator-7d4".
std::string pod_of_holder(const std::string& holder);

// The ServiceAccount that may read the operator's debug pages, by the name that the chart gives it
// beside that Lease: "stoker-operator" has "stoker-explain".
std::string explain_account_of(const std::string& lease_name);

}  // namespace stoker::cli
