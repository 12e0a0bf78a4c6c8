// stoker-s3: the pod's S3 endpoint on loopback. Composition root: parse, build, run.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/program/program.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/signals.h"
#include "sidecar/attached/begin_attached.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/s3/endpoint.h"

namespace stoker::s3 {
namespace {

constexpr std::string_view kName = "stoker-s3";
constexpr Duration kEndPatience = std::chrono::seconds{10};
constexpr Duration kEndLook = std::chrono::milliseconds{20};

Result<LoopbackKey> loopback_key() {
    LoopbackKey key{environment("STOKER_S3_ACCESS_KEY"), environment("STOKER_S3_SECRET_KEY")};
    if (key.access_key_id.empty() || key.secret_access_key.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "$STOKER_S3_ACCESS_KEY and $STOKER_S3_SECRET_KEY must be set: clients sign with them");
    }
    return key;
}

// Ends the loop when the last connection has ended, at the latest after kEndPatience.
void end(EventLoop& loop, Endpoint& endpoint, TimePoint give_up) {
    if (endpoint.connections() == 0 || loop.now() >= give_up) {
        loop.stop();
        return;
    }
    loop.run_at(
        loop.now() + kEndLook, [&loop, &endpoint, give_up] { end(loop, endpoint, give_up); });
}

Status run(const sidecar::SidecarConfig& config, const LoopbackKey& key) {
    const SystemClock clock;
    EventLoop loop{clock};
    std::unique_ptr<Endpoint> endpoint;
    const StopSignals signals{loop, [&](int signal) {
                                  log::info("stopping", {{"signal", signal}});
                                  endpoint->end_soon();
                                  end(loop, *endpoint, loop.now() + kEndPatience);
                              }};
    const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
    STOKER_TRY(endpoint, Endpoint::start(config, key, lookup, loop));
    log::info("listening", {{"address", config.s3_listen}, {"port", endpoint->port()}});
    loop.run();
    return {};
}

int start(const std::vector<std::string_view>& arguments) {
    const auto config = attached::begin_attached(kName, arguments);
    if (!config) {
        return config.error();
    }
    if (config->s3_listen.empty()) {
        return refuse_to_run(
            kName, {ErrorCode::kInvalidArgument, "s3Listen is not set: nothing to listen at"});
    }
    const auto key = loopback_key();
    if (!key) {
        return refuse_to_run(kName, key.error());
    }
    raise_descriptor_limit();  // each connection and each open segment needs a descriptor
    return exit_status(run(*config, *key));
}

}  // namespace
}  // namespace stoker::s3

int main(int argc, char** argv) {
    return stoker::s3::start({argv + 1, argv + argc});
}
