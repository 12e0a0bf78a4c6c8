// stoker-sidecar: serves the samples of its datasets from a node directory. Composition root:
// parse, build, run.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "common/config/host_port.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/metrics/metrics.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/signals.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/control_link.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/service/monitor.h"
#include "sidecar/service/sidecar.h"

namespace stoker::sidecar {
namespace {

constexpr Duration kLastWords = std::chrono::milliseconds{100};
constexpr std::string_view kUsage =
    "usage: stoker-sidecar [--config FILE] [--log-level error|warning|info|debug]\n"
    "                      [--check-config] [--version] [--help]\n"
    "Without --config the settings are the text in $STOKER_SIDECAR_CONFIG.\n";

struct Options {
    std::string config_path;
    log::Level log_level = log::Level::kInfo;
    bool check_only = false;
    bool show_version = false;
    bool show_help = false;
};

Result<Options> parse_options(int count, char** values) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view name{values[i]};
        const bool has_value = i + 1 < count;
        if (name == "--config" && has_value) {
            options.config_path = values[++i];
        } else if (
            name == "--log-level" && has_value &&
            log::parse_level(values[i + 1], options.log_level)) {
            ++i;
        } else if (name == "--check-config") {
            options.check_only = true;
        } else if (name == "--version") {
            options.show_version = true;
        } else if (name == "--help") {
            options.show_help = true;
        } else {
            return fail(ErrorCode::kInvalidArgument, fmt::format("bad option '{}'", name));
        }
    }
    return options;
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

Result<std::string> read_text(const std::string& path) {
    std::ifstream file{path};
    if (!file) {
        return fail(ErrorCode::kNotFound, fmt::format("{} cannot be read", path));
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

Result<SidecarConfig> load_config(const Options& options) {
    if (options.config_path.empty()) {
        const auto text = environment("STOKER_SIDECAR_CONFIG");
        if (!text) {
            return fail(
                ErrorCode::kInvalidArgument, "neither --config nor $STOKER_SIDECAR_CONFIG is set");
        }
        return parse_sidecar_config(*text, environment);
    }
    STOKER_TRY(const auto text, read_text(options.config_path));
    return parse_sidecar_config(text, environment);
}

// Of the running kernel. Without one every start counts as a reboot, which is safe and slow.
std::string boot_id() {
    auto text = read_text("/proc/sys/kernel/random/boot_id").value_or("");
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
}

Result<std::unique_ptr<Origin>> open_origin(
    const DatasetConfig& dataset, const Clock& clock, OriginMetrics& metrics) {
    OriginOptions options;
    options.endpoint = dataset.source.endpoint;
    options.region = dataset.source.region;
    if (const auto path_style = dataset.source.path_style) {
        options.addressing = *path_style ? S3Addressing::kPath : S3Addressing::kVirtualHost;
    }
    options.credentials_directory = dataset.source.credentials_directory;
    options.credentials_file = dataset.source.credentials_file;
    options.ca_file = dataset.source.ca_file;
    options.object_bytes_max = dataset.memory_bytes;
    options.max_in_flight = dataset.max_in_flight;
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

Result<std::unique_ptr<ControlLink>> open_link(
    const SidecarConfig& config, const Monitor& monitor, EventLoop& loop, Sidecar& sidecar) {
    if (config.control.endpoint.empty()) {
        return std::unique_ptr<ControlLink>{};
    }
    LinkCallbacks callbacks;
    callbacks.report = [&monitor] { return monitor.report(); };
    callbacks.grant = [&loop, &sidecar](const LinkGrant& grant) {
        loop.post([&loop, &sidecar, grant] {
            sidecar.set_grant(
                grant.dataset_uid,
                {grant.resident_bytes, loop.now() + grant.valid, grant.origin_bytes_per_second});
            JobWeights weights;
            for (const LinkWeight& weight : grant.weights) {
                weights[weight.job_uid] = weight.weight;
            }
            sidecar.set_weights(grant.dataset_uid, weights);
        });
    };
    callbacks.probe = [&loop, &sidecar](const LinkProbe& probe) {
        loop.post([&sidecar, probe] { sidecar.set_probe({probe.id, probe.batches}); });
    };
    callbacks.pin = [&loop, &sidecar](const LinkPin& pin) {
        loop.post([&sidecar, pin] { sidecar.set_pin(pin.dataset_uid, {pin.revision, pin.marks}); });
    };
    LinkOptions options;
    options.seed = std::random_device{}();
    return ControlLink::start(
        config.control, config.job, config.datasets, std::move(callbacks), options);
}

// Everything lives in the order of these lines and goes in the opposite one.
Status run(const SidecarConfig& config) {
    const SystemClock clock;
    EventLoop loop{clock};
    const StopSignals signals{loop, [&loop](int signal) {
                                  log::info("stopping", {{"signal", signal}});
                                  // What the trainers said last may still be in their sockets.
                                  loop.run_at(loop.now() + kLastWords, [&loop] { loop.stop(); });
                              }};
    metrics::Registry registry;
    OriginMetrics origin_metrics{registry};
    const auto device = make_posix_device();
    STOKER_TRY(
        const auto sidecar,
        Sidecar::start(
            config,
            loop,
            *device,
            [&](const DatasetConfig& dataset) {
                return open_origin(dataset, clock, origin_metrics);
            },
            boot_id()));
    Monitor monitor{*sidecar, loop, registry};
    STOKER_TRY(const auto http, open_http(config, monitor));
    STOKER_TRY(const auto link, open_link(config, monitor, loop, *sidecar));
    loop.run();
    monitor.look();  // the link's last report is about everything until here
    return {};
}

int start(int count, char** values) {
    const auto options = parse_options(count, values);
    if (!options) {
        fmt::print(stderr, "stoker-sidecar: {}\n{}", options.error().message, kUsage);
        return 2;
    }
    if (options->show_help || options->show_version) {
        fmt::print("{}", options->show_help ? kUsage : "stoker-sidecar " STOKER_VERSION "\n");
        return 0;
    }
    log::set_level(options->log_level);
    const auto config = load_config(*options);
    if (!config) {
        fmt::print(stderr, "stoker-sidecar: settings are wrong:\n{}\n", config.error().message);
        return 2;
    }
    if (options->check_only) {
        fmt::print("settings are good: {} dataset(s)\n", config->datasets.size());
        return 0;
    }
    if (const auto status = run(*config); !status) {
        log::error(
            "cannot run",
            {{"code", to_string(status.error().code)}, {"error", status.error().message}});
        return 1;
    }
    return 0;
}

}  // namespace
}  // namespace stoker::sidecar

int main(int argc, char** argv) {
    return stoker::sidecar::start(argc, argv);
}
