#include "operator/sidecars/trust_publisher.h"

#include <utility>

namespace stoker::control {

namespace {

constexpr Duration kRepeat = std::chrono::minutes{10};

}  // namespace

TrustPublisher::TrustPublisher(ApiClient& client, ObjectKey config_map, const Clock& clock)
    : client_(client),
      config_map_(std::move(config_map)),
      clock_(clock) {}

Status TrustPublisher::publish(const std::string& trust) {
    const TimePoint now = clock_.now();
    if (config_map_.name.empty() || (trust == published_ && now < published_at_ + kRepeat)) {
        return {};
    }
    const Json body = json_object(
        {{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", json_object({{"name", config_map_.name}, {"namespace", config_map_.ns}})},
         {"data", json_object({{"ca.crt", trust, Presence::kAlways}})}});
    STOKER_TRY_VOID(client_.apply(kinds::kConfigMaps, config_map_, body));
    published_ = trust;
    published_at_ = now;
    return {};
}

}  // namespace stoker::control
