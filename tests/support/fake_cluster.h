#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/job.h"
#include "operator/api/json.h"
#include "operator/api/training_job.h"
#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/server.h"

namespace stoker::test {

// A cluster as the operator sees it: the fake API server, while the test acts as kubelet, scheduler
// and Job controller. User objects are in namespace "ml", the operator is in "stoker-system".
// Thread-safe, like the server.
class FakeCluster {
public:
    FakeCluster();

    ApiServer& api() { return api_; }

    // Creates an object as a user does; `spec` is JSON.
    void add(const control::ResourceKind& kind, const std::string& name, const std::string& spec);
    void change(
        const control::ResourceKind& kind, const std::string& name, const std::string& patch);
    void remove(const control::ResourceKind& kind, const std::string& name);
    // Applies `status` (JSON) as another controller, with field manager `manager`.
    void apply_status(
        const control::ResourceKind& kind,
        const std::string& name,
        const std::string& manager,
        const std::string& status);

    void add_node(const std::string& name);
    void add_pool(const std::string& name, const std::string& capacity);
    // Creates a Dataset on S3; returns its uid.
    std::string add_dataset(const std::string& name);
    // Creates a job on dataset "digits" with `nodes` ranks; `more` is JSON fields of the spec, each with a
    // leading comma.
    void add_training_job(const std::string& name, int nodes = 1, const std::string& more = "");

    // Acts as Job controller, scheduler and kubelet: creates one running pod for each rank of that
    // Job, all on `node`.
    void run_pods(const std::string& job, const std::string& node);
    // The name of a rank's pod: "<job>-<rank>-x".
    static std::string pod_name(const std::string& job, int rank);
    // Makes all pods succeed, or one fail with `exit_code`, and the Job with it.
    void finish(const std::string& job, int exit_code);
    // Reasons of the operator's Events about that TrainingJob.
    std::set<std::string> operator_events(const std::string& training_job);
    // A service account token as the kubelet projects it into that pod.
    void add_token(const std::string& token, const std::string& pod, const std::string& node);
    // The token of the node program's pod on that node.
    std::string add_node_program(const std::string& node);

    [[nodiscard]] std::optional<control::Json> find(
        const control::ResourceKind& kind, const std::string& name);
    [[nodiscard]] std::string uid_of(const control::ResourceKind& kind, const std::string& name);
    [[nodiscard]] control::TrainingJob training_job(const std::string& name);
    [[nodiscard]] std::vector<std::string> names(const control::ResourceKind& kind);

    // "True Granted"; "" without such a condition.
    std::string condition(
        const control::ResourceKind& kind, const std::string& name, const std::string& type);
    std::string message(
        const control::ResourceKind& kind, const std::string& name, const std::string& type);

private:
    void add_token(
        const std::string& token,
        const std::string& account,
        const std::string& pod,
        const std::string& node);
    void set_status(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const std::string& status);

    ApiServer api_;
};

// "ml" for namespaced kinds, "" for others.
control::ObjectKey key_of(const control::ResourceKind& kind, const std::string& name);

}  // namespace stoker::test
