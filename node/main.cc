// stoker-node: owns the pools' directories of one node. Composition root: parse, build, run.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>

#include "cli/flags/flags.h"
#include "common/base/clock.h"
#include "common/config/host_port.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/named_thread.h"
#include "common/runtime/signals.h"
#include "node/mount/mounts.h"
#include "node/service/cluster_facts.h"
#include "node/service/csi_server.h"
#include "node/service/operator_link.h"
#include "node/service/operator_loop.h"
#include "node/service/pool_keeper.h"
#include "node/service/publisher.h"
#include "operator/kube/access.h"
#include "operator/kube/pause.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"

namespace stoker::node {
namespace {

constexpr int kExitUsage = 2;
constexpr Duration kLingerLook = std::chrono::seconds{2};
constexpr Duration kApiTryLimit = std::chrono::seconds{10};

struct Settings {
    std::string node;
    std::string ns;
    std::string daemonset = "stoker-node";
    std::string host_root = "/host";
    std::string kubelet_directory = "/var/lib/kubelet";
    std::string operator_endpoint;
    std::string ca_file = "/etc/stoker/control-ca/ca.crt";
    std::string token_file = "/var/run/secrets/stoker/token";
    std::string http_listen = "[::]:9456";
    std::string log_level = "info";
    bool help = false;
    bool version = false;
};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::vector<cli::FlagGroup> flag_groups(Settings& settings) {
    using cli::text_into;
    const auto set = [](bool& target) {
        return [&target](std::string_view) -> Status {
            target = true;
            return {};
        };
    };
    return {
        {"Settings",
         {{"node", "NAME", "this node's name ($NODE_NAME)", text_into(settings.node)},
          {"namespace", "NAME", "our own namespace ($POD_NAMESPACE)", text_into(settings.ns)},
          {"daemonset", "NAME", "our own DaemonSet", text_into(settings.daemonset)},
          {"host-root", "PATH", "where the host's / is mounted", text_into(settings.host_root)},
          {"kubelet-directory",
           "PATH",
           "the kubelet's folder, the same on the host and here",
           text_into(settings.kubelet_directory)},
          {"operator",
           "HOST:PORT",
           "the operator; empty: none",
           text_into(settings.operator_endpoint)},
          {"ca-file",
           "PATH",
           "what the operator's certificate is checked with",
           text_into(settings.ca_file)},
          {"token-file",
           "PATH",
           "our ServiceAccount token for the operator",
           text_into(settings.token_file)},
          {"http-listen", "HOST:PORT", "of /healthz; empty: none", text_into(settings.http_listen)},
          {"log-level", "LEVEL", "error, warning, info or debug", text_into(settings.log_level)}}},
        {"Other",
         {{"help", "", "print this", set(settings.help)},
          {"version", "", "print the version", set(settings.version)}}}};
}

// Everything that lives as long as the process, in the order in which it depends on each other.
class NodeProgram {
public:
    NodeProgram(Settings settings, const control::AccessConfig& access)
        : settings_(std::move(settings)),
          access_(access, control::system_doors(), clock_),
          transport_(access_, transport_options(), clock_),
          client_(transport_, client_options(), clock_, client_stop_.get_token()),
          facts_(client_, clock_, {settings_.ns, settings_.daemonset}),
          host_root_(::open(settings_.host_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
          mounts_(make_mounts(settings_.kubelet_directory, kDriverName)),
          publisher_({facts_, *mounts_, host_root_.get(), {}}),
          keeper_({*mounts_, clock_, host_root_.get(), {}}) {}

    Status run(const std::stop_token& stop);

private:
    static control::RestTransportOptions transport_options() {
        control::RestTransportOptions options;
        options.user_agent = "stoker-node/" STOKER_VERSION " (linux)";
        return options;
    }

    // The kubelet tries again; a try must be over before the kubelet's own limit of two minutes.
    static control::RestClientOptions client_options() {
        control::RestClientOptions options;
        options.field_manager = "stoker-node";
        options.time_limit = kApiTryLimit;
        return options;
    }

    Status start_http();
    void talk_to_operator(const std::stop_token& stop);
    void linger();

    Settings settings_;
    SystemClock clock_;
    control::AccessSource access_;
    control::RestTransport transport_;
    std::stop_source client_stop_;
    control::RestClient client_;
    ApiFacts facts_;
    UniqueFd host_root_;
    std::unique_ptr<Mounts> mounts_;
    Publisher publisher_;
    PoolKeeper keeper_;
    std::unique_ptr<http::HttpServer> http_;
};

Status NodeProgram::start_http() {
    if (settings_.http_listen.empty()) {
        return {};
    }
    STOKER_TRY(const auto listen, config::parse_host_port(settings_.http_listen));
    http::ServerOptions options;
    options.address = listen.host;
    options.port = listen.port;
    STOKER_TRY(
        http_, http::HttpServer::start(std::move(options), [](const http::ServerRequest& request) {
            return request.path() == "/healthz"
                       ? http::ServerResponse{200, "text/plain", "ok\n"}
                       : http::ServerResponse{404, "text/plain", "only /healthz is here\n"};
        }));
    return {};
}

void NodeProgram::talk_to_operator(const std::stop_token& stop) {
    if (settings_.operator_endpoint.empty()) {
        return;
    }
    const auto client = make_operator_client(
        {settings_.operator_endpoint, settings_.ca_file, settings_.token_file});
    std::ifstream boot_id_file{"/proc/sys/kernel/random/boot_id"};
    std::string boot_id;
    boot_id_file >> boot_id;
    OperatorLoop loop{keeper_, *client, {settings_.node, boot_id}, std::random_device{}()};
    while (control::pause_until(clock_, clock_.now() + loop.step(), stop)) {
    }
}

// Without a driver the kubelet can unmount nothing, and pods that end would hang in Terminating for
// ever. So after an uninstallation this program stays until the last pod with a view has gone, or
// until its own grace period is over. A restart or an upgrade ends it at once: the next one goes
// on.
void NodeProgram::linger() {
    if (!facts_.is_uninstalled()) {
        return;
    }
    std::size_t told = 0;
    while (true) {
        const auto mounted = mounts_->mounted();
        if (!mounted || mounted->empty()) {
            return;
        }
        if (mounted->size() != told) {
            told = mounted->size();
            log::warning("uninstalled; staying until pods release their views", {{"views", told}});
        }
        control::pause_until(clock_, clock_.now() + kLingerLook, {});
    }
}

Status NodeProgram::run(const std::stop_token& stop) {
    if (!host_root_.valid()) {
        return fail(ErrorCode::kNotFound, fmt::format("{} cannot be opened", settings_.host_root));
    }
    STOKER_TRY_VOID(start_http());
    STOKER_TRY(
        const auto server,
        CsiServer::start({settings_.node, kDriverName, settings_.kubelet_directory}, publisher_));
    talk_to_operator(stop);
    control::pause_until(clock_, TimePoint::max(), stop);
    linger();
    client_stop_.request_stop();
    return {};
}

int run_program(Settings settings) {
    const auto access = control::in_cluster_access(environment);
    if (!access) {
        fmt::print(stderr, "stoker-node: {}\n", access.error().message);
        return kExitUsage;
    }
    const SystemClock clock;
    EventLoop loop(clock);
    std::stop_source stop;
    // Before any thread starts.
    const StopSignals signals(loop, [&](int signal) {
        log::info("stopping", {{"signal", signal}});
        stop.request_stop();
    });
    const std::jthread loop_thread =
        start_thread("signals", [&loop](const std::stop_token&) { loop.run(); });
    NodeProgram program(std::move(settings), *access);
    const Status status = program.run(stop.get_token());
    loop.stop();
    if (!status) {
        log::error("cannot run", {{"error", status.error().message}});
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int start(const std::vector<std::string_view>& arguments) {
    Settings settings;
    settings.node = environment("NODE_NAME");
    settings.ns = environment("POD_NAMESPACE");
    const auto groups = flag_groups(settings);
    const Status parsed = cli::parse_flags(groups, arguments);
    if (!parsed) {
        fmt::print(stderr, "stoker-node: {}\n", parsed.error().message);
        return kExitUsage;
    }
    if (settings.help) {
        fmt::print("usage: stoker-node [flags]\n{}", cli::flag_help(groups));
        return EXIT_SUCCESS;
    }
    if (settings.version) {
        fmt::print("stoker-node {}\n", STOKER_VERSION);
        return EXIT_SUCCESS;
    }
    log::Level level{};
    if (!log::parse_level(settings.log_level, level) || settings.node.empty() ||
        settings.ns.empty()) {
        fmt::print(
            stderr, "stoker-node: --node and --namespace are needed, --log-level is a level\n");
        return kExitUsage;
    }
    log::set_level(level);
    return run_program(std::move(settings));
}

}  // namespace
}  // namespace stoker::node

int main(int argc, char** argv) {
    return stoker::node::start({argv + 1, argv + argc});
}
