#pragma once

#include <optional>

#include "common/base/result.h"
#include "operator/api/meta.h"
#include "operator/kube/client.h"

namespace stoker::control {

// The operator's own pod as the owner of what it makes in its namespace. One user at a time.
class PodOwner {
public:
    // Asks once: our pod stays the same as long as this process does. Outside of a cluster there is
    // none.
    Status learn(ApiClient& client, const ObjectKey& own_pod) {
        if (known_) {
            return {};
        }
        const Result<Object> pod = client.get(kinds::kPods, own_pod);
        if (pod) {
            owner_ = OwnerReference{"v1", "Pod", pod->key.name, pod->uid, false};
        } else if (pod.error().code != ErrorCode::kNotFound) {
            return fail(pod.error());
        }
        known_ = true;
        return {};
    }

    [[nodiscard]] const std::optional<OwnerReference>& get() const { return owner_; }

private:
    bool known_ = false;
    std::optional<OwnerReference> owner_;
};

}  // namespace stoker::control
