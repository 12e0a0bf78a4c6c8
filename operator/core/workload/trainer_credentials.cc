#include "operator/core/workload/trainer_credentials.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/domain/http_uri.h"
#include "operator/api/job_manifest.h"
#include "operator/core/workload/pod_volumes.h"

namespace stoker::control {

namespace {

// Secrets of the job's own datasets, or (`foreign`) of other namespaces' datasets, on web servers
// (`http`) or at the S3 API.
std::set<std::string> secrets_of(const JobInput& input, bool http, bool foreign) {
    std::set<std::string> secrets;
    for (const ResolvedDataset& dataset : input.datasets) {
        const DatasetSource& source = dataset.source;
        if (uses_secret(input, dataset) && domain::is_http_uri(source.storage_uri) == http &&
            is_foreign(input, dataset) == foreign) {
            secrets.insert(*source.secret_ref);
        }
    }
    return secrets;
}

struct TrainerSecret {
    std::string name;
    bool optional = false;
};

// resolve_datasets() allows only one Secret of each kind for own datasets. Secrets for foreign datasets
// serve reads that bypass the cache, and only if there is exactly one; never for web servers.
std::optional<TrainerSecret> trainer_secret(const JobInput& input, bool http) {
    std::set<std::string> secrets = secrets_of(input, http, false);
    const bool optional = secrets.empty();
    if (optional) {
        secrets = secrets_of(input, http, true);
    }
    return secrets.size() == 1 ? std::optional{TrainerSecret{*secrets.begin(), optional}}
                               : std::nullopt;
}

}  // namespace

void add_credentials(const JobInput& input, std::vector<EnvVar>& env) {
    const auto secret = trainer_secret(input, false);
    if (!secret) {
        return;
    }
    for (const std::string key : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) {
        env.push_back({key, "", from_secret(secret->name, key, secret->optional)});
    }
    env.push_back({"AWS_SESSION_TOKEN", "", from_secret(secret->name, "AWS_SESSION_TOKEN", true)});
}

void add_http_credentials(const JobInput& input, std::vector<EnvVar>& env) {
    const auto secret = trainer_secret(input, true);
    if (!secret) {
        return;
    }
    using Pair = std::pair<const char*, const char*>;
    for (const auto& [variable, key] :
         {Pair{"STOKER_HTTP_TOKEN", "token"},
          Pair{"STOKER_HTTP_USERNAME", "username"},
          Pair{"STOKER_HTTP_PASSWORD", "password"}}) {
        env.push_back({variable, "", from_secret(secret->name, key, true)});
    }
}

}  // namespace stoker::control
