#include "operator/webhook/webhook.h"

#include <utility>

#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr const char* kFieldManager = "stoker-webhook";

// The API server waits five seconds for an answer that may need four reads.
RestClientOptions quick_client() {
    RestClientOptions options;
    options.field_manager = kFieldManager;
    options.time_limit = std::chrono::seconds{1};
    options.retry.tries = 1;
    return options;
}

SecretAuthority::Options authority_options(
    const WebhookSettings& settings, const std::string& own_namespace) {
    return {
        {own_namespace, settings.ca_secret_name},
        {settings.host_name},
        static_cast<const AuthorityTerms&>(settings)};
}

CertificateKeeper::Options keeper_options() {
    CertificateKeeper::Options options;
    options.purpose = "the webhook";
    return options;
}

}  // namespace

Webhook::Webhook(const WebhookSettings& settings, Parts parts, const std::stop_token& stop)
    : parts_(std::move(parts)),
      client_(parts_.transport, quick_client(), parts_.clock, stop),
      authority_(parts_.authority, authority_options(settings, parts_.own_namespace), parts_.clock),
      trust_(parts_.authority, settings.configuration_name, parts_.clock),
      certificate_([this] { return load_certificate(); }, parts_.clock, keeper_options()),
      owners_(client_, parts_.clock),
      injector_(
          {parts_.cache,
           owners_,
           parts_.job_settings,
           parts_.own_namespace,
           [this] { return parts_.cache.has_synced(); }}),
      server_(settings.listen, [this](const std::string& body) { return answer(body); }) {
    certificate_.add_listener(
        [this](const ServedCertificate& now) { server_.use_certificate(now); });
}

void Webhook::add_to(Supervisor& supervisor) {
    supervisor.add_service({"webhook", [] { return Status{}; }, [this] { server_.stop(); }});
    // Ready without a certificate: jobs of Stoker's own do not need the webhook.
    supervisor.add_cache(
        "webhook-certificate",
        [this](const std::stop_token& stop) { certificate_.run(stop); },
        [] { return true; });
}

Result<ServedCertificate> Webhook::load_certificate() {
    STOKER_TRY(ServedCertificate served, authority_.load());
    const Status published = trust_.publish(served.trust);
    std::string trouble = published ? "" : published.error().message;
    if (trouble != told_ && !trouble.empty()) {
        log::warning("cannot write the webhook's caBundle", {{"error", trouble}});
    }
    told_ = std::move(trouble);
    return served;
}

Result<std::string> Webhook::answer(const std::string& body) {
    STOKER_TRY(const AdmissionRequest request, read_admission_request(body));
    STOKER_TRY(Injection injection, injector_.inject(request));
    for (EventNote& note : injection.events) {
        parts_.events.record(std::move(note));
    }
    ++(*outcomes_.lock())[injection.outcome];
    return admission_answer(request.uid, injection.patch, injection.warnings);
}

std::map<std::string, std::uint64_t> Webhook::outcomes() {
    std::map<std::string, std::uint64_t> result = *outcomes_.lock();
    result["failed"] = server_.failures();
    return result;
}

}  // namespace stoker::control
