#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/core/workload/foreign_job.h"
#include "operator/kube/client.h"

namespace stoker::control {

// Finds the workload of a pod: its topmost controller. An owner's own controller never changes, so
// answers are kept for ten minutes; of a thousand pods of one Job one asks the API server.
// Thread-safe.
class OwnerFinder {
public:
    // `client` and `clock` must outlive it. The webhook answers within seconds: use a client that
    // does not retry.
    OwnerFinder(ApiClient& client, const Clock& clock);

    // `controller`: of the pod. The chain ends at an owner that has no controller, that the operator
    // cannot read (unknown kind, no right), or that is gone. Blocks. Other errors: the API server's.
    Result<ForeignWorkload> find(const std::string& ns, const OwnerReference& controller);

private:
    struct Answer {
        ForeignWorkload workload;
        TimePoint until{};
    };

    Result<ForeignWorkload> ask(const std::string& ns, const OwnerReference& controller);

    ApiClient& client_;
    const Clock& clock_;
    Guarded<std::map<std::string, Answer>> known_;  // by the controller's uid
};

}  // namespace stoker::control
