#include "operator/webhook/webhook_trust.h"

#include <utility>

#include "operator/kube/access.h"

namespace stoker::control {

namespace {

constexpr Duration kRepeat = std::chrono::minutes{1};
constexpr const char* kWebhook = "pods.stoker.dev";  // its name in the configuration

}  // namespace

WebhookTrust::WebhookTrust(ApiClient& client, std::string configuration, const Clock& clock)
    : client_(client),
      configuration_(std::move(configuration)),
      clock_(clock) {}

Status WebhookTrust::publish(const std::string& trust) {
    const TimePoint now = clock_.now();
    if (trust == published_ && now < published_at_ + kRepeat) {
        return {};
    }
    const Json webhook = json_object(
        {{"name", kWebhook}, {"clientConfig", json_object({{"caBundle", base64_encode(trust)}})}});
    const Json body = json_object(
        {{"apiVersion", kinds::kMutatingWebhooks.api_version()},
         {"kind", kinds::kMutatingWebhooks.kind},
         {"metadata", json_object({{"name", configuration_}})},
         {"webhooks", std::vector{webhook}}});
    STOKER_TRY_VOID(client_.apply(kinds::kMutatingWebhooks, {"", configuration_}, body));
    published_ = trust;
    published_at_ = now;
    return {};
}

}  // namespace stoker::control
