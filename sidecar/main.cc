// stoker-sidecar: serves the samples of its datasets from a node directory. Composition root:
// parse, build, run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/config/host_port.h"
#include "common/flags/flags.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/metrics/metrics.h"
#include "common/program/program.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/signals.h"
#include "common/runtime/worker_pool.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/control_link.h"
#include "sidecar/core/idle_watch.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/peers/peer_key.h"
#include "sidecar/peers/tls_network.h"
#include "sidecar/service/monitor.h"
#include "sidecar/service/sidecar.h"

namespace stoker::sidecar {
namespace {

constexpr Duration kIdleLookInterval = std::chrono::seconds{1};
constexpr Duration kLastWords = std::chrono::milliseconds{100};
constexpr std::string_view kName = "stoker-sidecar";

struct Flags {
    std::string config_path;
    bool check_only = false;
};

std::vector<FlagGroup> flag_groups(Flags& flags) {
    return {
        {"Settings",
         {{"config",
           "FILE",
           "the settings; without it they are the text in $STOKER_SIDECAR_CONFIG",
           text_into(flags.config_path)},
          {"check-config", "", "read the settings, and exit", switch_into(flags.check_only)}}}};
}

// Boot id of the running kernel. If it cannot be read, every start counts as a reboot, which is
// safe but slow.
std::string boot_id() {
    return read_filled_file("/proc/sys/kernel/random/boot_id").value_or("");
}

Result<std::unique_ptr<Origin>> open_origin(
    const DatasetConfig& dataset, const Clock& clock, OriginMetrics& metrics) {
    OriginOptions options = options_of(dataset.source);
    options.object_bytes_max = dataset.memory_bytes;
    options.max_in_flight = dataset.max_in_flight;
    options.requests_per_fetch = 1 + kGuestShare + (dataset.peers ? 1 : 0);
    options.metrics = &metrics;
    const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
    return make_origin(dataset.source.uri, options, lookup, clock, std::random_device{}());
}

Result<http::ServerOptions> server_options(const std::string& listen) {
    STOKER_TRY(const config::HostPort parsed, config::parse_host_port(listen));
    http::ServerOptions options;
    options.address = parsed.host;
    options.port = parsed.port;
    return options;
}

Result<std::unique_ptr<http::HttpServer>> open_http(
    const SidecarConfig& config, const Monitor& monitor) {
    if (config.http_listen.empty()) {
        return std::unique_ptr<http::HttpServer>{};
    }
    STOKER_TRY(auto options, server_options(config.http_listen));
    return http::HttpServer::start(
        std::move(options),
        [&monitor](const http::ServerRequest& request) { return monitor.answer(request); });
}

// The network for peers. nullptr: this sidecar has no peers.
Result<std::unique_ptr<PeerNetwork>> open_peers(const SidecarConfig& config, EventLoop& loop) {
    if (config.peers.listen.empty()) {
        return std::unique_ptr<PeerNetwork>{};
    }
    STOKER_TRY(const config::HostPort listen, config::parse_host_port(config.peers.listen));
    TlsNetwork::Options options{
        .host = listen.host, .port = listen.port, .address = config.peers.address};
    for (const DatasetConfig& dataset : config.datasets) {
        options.limits.payload_max =
            std::max<std::size_t>(options.limits.payload_max, dataset.memory_bytes.count());
    }
    // A frame states its payload's length in 32 bits.
    options.limits.payload_max = std::min<std::size_t>(options.limits.payload_max, UINT32_MAX);
    return std::make_unique<TlsNetwork>(loop, std::move(options));
}

Result<std::unique_ptr<ControlLink>> open_link(
    const SidecarConfig& config, const Monitor& monitor, Sidecar& sidecar) {
    if (config.control.endpoint.empty()) {
        return std::unique_ptr<ControlLink>{};
    }
    LinkCallbacks callbacks = sidecar.link_callbacks();
    callbacks.report = [&monitor] { return monitor.report(); };
    LinkOptions options;
    options.seed = std::random_device{}();
    return ControlLink::start(
        config.control, config.job, config.datasets, std::move(callbacks), options);
}

std::uint64_t random_number() {
    return std::random_device{}() | std::uint64_t{std::random_device{}()} << 32U;
}

std::unique_ptr<Workers> start_threads(const std::string& name, std::size_t count) {
    return std::make_unique<WorkerPool>(name, count);
}

// Ends a sidecar that was unused for config.end_when_idle, if that is not zero.
class IdleEnd {
public:
    IdleEnd(EventLoop& loop, const Sidecar& sidecar)
        : loop_(loop),
          sidecar_(sidecar),
          watch_(sidecar.config().end_when_idle, loop.now()),
          timer_(loop) {
        if (sidecar.config().end_when_idle > Duration{}) {
            look();
        }
    }

private:
    void look() {
        if (watch_.is_over(loop_.now(), sidecar_.is_in_use())) {
            log::info("stopping: nobody has used this sidecar");
            loop_.stop();
            return;
        }
        timer_.run_in(kIdleLookInterval, [this] { look(); });
    }

    EventLoop& loop_;
    const Sidecar& sidecar_;
    IdleWatch watch_;
    LoopTimer timer_;
};

// Objects are created in the order of these lines and destroyed in the reverse order.
Status run(const SidecarConfig& config) {
    const SystemClock clock;
    EventLoop loop{clock};
    const StopSignals signals{loop, [&loop](int signal) {
                                  log::info("stopping", {{"signal", signal}});
                                  // The trainers' last frames may still be unread.
                                  loop.run_at(loop.now() + kLastWords, [&loop] { loop.stop(); });
                              }};
    metrics::Registry registry;
    OriginMetrics origin_metrics{registry};
    const auto device = make_posix_device();
    STOKER_TRY(const auto peers, open_peers(config, loop));
    STOKER_TRY(const PeerKey peer_key, make_peer_key());
    STOKER_TRY(
        const auto sidecar,
        Sidecar::start(
            config,
            loop,
            {*device, boot_id(), random_number(), start_threads, peers.get(), peer_key},
            [&](const DatasetConfig& dataset) {
                return open_origin(dataset, clock, origin_metrics);
            }));
    Monitor monitor{*sidecar, loop, registry, config.http_readers};
    STOKER_TRY(const auto http, open_http(config, monitor));
    STOKER_TRY(const auto link, open_link(config, monitor, *sidecar));
    const IdleEnd idle_end{loop, *sidecar};
    loop.run();
    monitor.look();  // so that the link's last report covers everything up to now
    return {};
}

int start(const std::vector<std::string_view>& arguments) {
    Flags flags;
    if (const auto done = begin_program(kName, flag_groups(flags), arguments)) {
        return *done;
    }
    const auto config = load_sidecar_config(flags.config_path, find_environment);
    if (!config) {
        return refuse_to_run(kName, config.error().prefixed("settings are wrong"));
    }
    if (flags.check_only) {
        fmt::print("settings are valid: {} dataset(s)\n", config->datasets.size());
        return EXIT_SUCCESS;
    }
    raise_descriptor_limit();
    return exit_status(run(*config));
}

}  // namespace
}  // namespace stoker::sidecar

int main(int argc, char** argv) {
    return stoker::sidecar::start({argv + 1, argv + argc});
}
