#include "operator/agents/trust_publisher.h"

#include <utility>

#include <cpprest/json.h>

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
    using web::json::value;
    value body;
    body["apiVersion"] = value("v1");
    body["kind"] = value("ConfigMap");
    body["metadata"]["name"] = value(config_map_.name);
    body["metadata"]["namespace"] = value(config_map_.ns);
    body["data"]["ca.crt"] = value(trust);
    STOKER_TRY_VOID(client_.apply(kinds::kConfigMaps, config_map_, Json(std::move(body))));
    published_ = trust;
    published_at_ = now;
    return {};
}

}  // namespace stoker::control
