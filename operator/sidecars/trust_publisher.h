#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/kube/client.h"

namespace stoker::control {

// Keeps "ca.crt" of a ConfigMap equal to what those who call the operator should trust. The node
// program mounts it: a Secret that is mounted on every node would give every kubelet the CA's key.
// Not thread-safe.
class TrustPublisher {
public:
    // Both must outlive it. An empty name publishes nothing.
    TrustPublisher(ApiClient& client, ObjectKey config_map, const Clock& clock);

    // Applies it when it changed, and every ten minutes in case somebody else changed it.
    Status publish(const std::string& trust);

private:
    ApiClient& client_;
    ObjectKey config_map_;
    const Clock& clock_;
    std::string published_;
    TimePoint published_at_{};
};

}  // namespace stoker::control
