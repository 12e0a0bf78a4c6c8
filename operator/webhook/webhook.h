#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/config/operator_config.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/rest_client.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/supervisor.h"
#include "operator/sidecars/certificate_keeper.h"
#include "operator/sidecars/secret_authority.h"
#include "operator/webhook/injector.h"
#include "operator/webhook/owner_finder.h"
#include "operator/webhook/webhook_server.h"
#include "operator/webhook/webhook_trust.h"

namespace stoker::control {

// The webhook with its certificates: a CA of its own in a Secret, a leaf in memory, and the caBundle
// of the MutatingWebhookConfiguration. Every replica has one, also while it does not lead. An error
// of the webhook never stops the operator: pods then start without a cache.
class Webhook {
public:
    // All must outlive it.
    struct Parts {
        ClusterCache& cache;
        ApiTransport& transport;  // its own: controllers must not slow it down
        ApiClient& authority;     // writes without leadership
        EventRecorder& events;
        const Clock& clock;
        std::string own_namespace;
        std::function<JobSettings()> job_settings;  // thread-safe
    };

    Webhook(const WebhookSettings& settings, Parts parts, const std::stop_token& stop);

    // Adds the server and the renewal of its certificate.
    void add_to(Supervisor& supervisor);

    // For tests. 0: not open yet.
    [[nodiscard]] std::uint16_t port() { return server_.port(); }

    // Reviews since the start by outcome: cached, refused, unchanged, failed. Thread-safe.
    [[nodiscard]] std::map<std::string, std::uint64_t> outcomes();

private:
    Result<ServedCertificate> load_certificate();
    Result<std::string> answer(const std::string& body);

    Parts parts_;
    RestClient client_;
    SecretAuthority authority_;
    WebhookTrust trust_;
    CertificateKeeper certificate_;
    OwnerFinder owners_;
    Injector injector_;
    WebhookServer server_;
    Guarded<std::map<std::string, std::uint64_t>> outcomes_;
    std::string told_;  // the last logged error of trust_; only load_certificate() uses it
};

}  // namespace stoker::control
