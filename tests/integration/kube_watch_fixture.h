#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/kube/access.h"
#include "operator/kube/rest_transport.h"
#include "operator/runtime/informer.h"
#include "tests/support/api_server/server.h"
#include "tests/support/poll.h"

namespace stoker::control {

// An informer of config maps over real HTTP against the fake API server, on its own thread. The
// back-off is short, because these tests do not measure it.
class WatchingInformer {
public:
    WatchingInformer(test::ApiServer& server, std::uint64_t seed, WatchOptions options = quick())
        : access_(config_of(server), read_file, clock_),
          transport_(access_, {"stoker-test", mib(64), 8}, clock_),
          informer_(
              transport_,
              std::move(options),
              [](const Json& raw) -> Result<Json> { return raw; },
              clock_,
              seed) {}

    static WatchOptions quick() {
        WatchOptions options;
        options.kind = kinds::kConfigMaps;
        options.page_size = 7;
        options.back_off.base = std::chrono::milliseconds{1};
        options.back_off.cap = std::chrono::milliseconds{20};
        return options;
    }

    void start() {
        thread_ = std::jthread([this](const std::stop_token& stop) { informer_.run(stop); });
    }

    void stop() {
        thread_.request_stop();
        thread_.join();
    }

    Informer<Json>& informer() { return informer_; }

    Store<Json>& store() { return informer_.store(); }

    // Maps each key in the store to "uid/version".
    std::map<ObjectKey, std::string> held() {
        std::map<ObjectKey, std::string> all;
        for (const auto& object : store().list()) {
            all[object->key] = object->uid + "/" + object->resource_version;
        }
        return all;
    }

private:
    static AccessConfig config_of(test::ApiServer& server) {
        AccessConfig config;
        config.server = server.url();
        return config;
    }

    SystemClock clock_;
    AccessSource access_;
    RestTransport transport_;
    Informer<Json> informer_;
    std::jthread thread_;  // last: it uses the members above
};

// The same map as held(), from the server's objects.
inline std::map<ObjectKey, std::string> truth(
    test::ApiServer& server, const ResourceKind& kind = kinds::kConfigMaps) {
    std::map<ObjectKey, std::string> all;
    server.with_model([&](test::ApiServerModel& model) {
        for (const auto& [key, json] : model.all(kind)) {
            const auto object = read_object(json);
            all[key] = object->uid + "/" + object->resource_version;
        }
    });
    return all;
}

inline std::string named(const std::string& name, const std::string& data = "") {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"v":"{}"}}}})", name, data);
}

}  // namespace stoker::control
