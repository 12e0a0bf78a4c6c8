#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/kube/client.h"

namespace stoker::control {

// Keeps the caBundle of a MutatingWebhookConfiguration equal to the CAs of the webhook's
// certificate. The chart creates the configuration without a caBundle; this class never creates it.
// Not thread-safe.
class WebhookTrust {
public:
    // `client` and `clock` must outlive it.
    WebhookTrust(ApiClient& client, std::string configuration, const Clock& clock);

    // Applies `trust` (PEM) when it changed, and every minute in case of another writer. Errors: the
    // API server's; kNotFound or kForbidden: there is no such configuration.
    Status publish(const std::string& trust);

private:
    ApiClient& client_;
    std::string configuration_;
    const Clock& clock_;
    std::string published_;
    TimePoint published_at_{};
};

}  // namespace stoker::control
