#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "node/core/view_request.h"
#include "operator/kube/client.h"

namespace stoker::node {

// The API server's data that a mount depends on. Thread-safe; every call may block until the API
// server responds or its time limit ends.
class ClusterFacts {
public:
    virtual ~ClusterFacts() = default;

    // The directory of a CachePool on its nodes. kNotFound: no such pool.
    virtual Result<std::string> pool_path(const std::string& pool) = 0;

    // Checks that Dataset.spec.sharing admits the pod's namespace to this very dataset. kForbidden:
    // it does not, or there is no such Dataset; the message does not distinguish the two.
    virtual Status check_shared(const ViewRequest& request) = 0;

    // True if our own DaemonSet is gone or being deleted: no new node program will start here.
    virtual bool is_uninstalled() = 0;
};

struct OwnDaemonSet {
    std::string ns;
    std::string name;
};

// Reads from the API server. Caches a pool's directory for `kRemember`; never caches sharing.
// `client` and `clock` must outlive it.
class ApiFacts final : public ClusterFacts {
public:
    static constexpr Duration kRemember = std::chrono::seconds{30};

    ApiFacts(control::ApiClient& client, const Clock& clock, OwnDaemonSet own)
        : client_(client),
          clock_(clock),
          own_(std::move(own)) {}

    Result<std::string> pool_path(const std::string& pool) override;
    Status check_shared(const ViewRequest& request) override;
    bool is_uninstalled() override;

private:
    struct KnownPool {
        std::string path;
        TimePoint asked_at{};
    };

    control::ApiClient& client_;
    const Clock& clock_;
    OwnDaemonSet own_;
    Guarded<std::map<std::string, KnownPool>> pools_;
};

}  // namespace stoker::node
