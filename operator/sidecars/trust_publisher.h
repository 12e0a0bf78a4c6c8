#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/kube/client.h"

namespace stoker::control {

// Keeps "ca.crt" of a ConfigMap equal to the CA certificates that the operator's clients must
// trust. The node program mounts it: a Secret mounted on every node would expose the CA's key to
// every kubelet. Not thread-safe.
class TrustPublisher {
public:
    // `client` and `clock` must outlive it. An empty name publishes nothing.
    TrustPublisher(ApiClient& client, ObjectKey config_map, const Clock& clock);

    // Applies `trust` when it changed, and every ten minutes in case of another writer.
    Status publish(const std::string& trust);

private:
    ApiClient& client_;
    ObjectKey config_map_;
    const Clock& clock_;
    std::string published_;
    TimePoint published_at_{};
};

}  // namespace stoker::control
