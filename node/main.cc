// stoker-node: manages the pools' directories of one node. Composition root: parse, build, run.
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>

#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/config/host_port.h"
#include "common/flags/flags.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/program/program.h"
#include "node/mount/mounts.h"
#include "node/service/cluster_facts.h"
#include "node/service/csi_server.h"
#include "node/service/file_mounts.h"
#include "node/service/node_metrics.h"
#include "node/service/operator_link.h"
#include "node/service/operator_loop.h"
#include "node/service/pool_keeper.h"
#include "node/service/publisher.h"
#include "operator/kube/access.h"
#include "operator/kube/api_metrics.h"
#include "operator/kube/pause.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"

namespace stoker::node {
namespace {

constexpr std::string_view kName = "stoker-node";
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
};

std::vector<FlagGroup> flag_groups(Settings& settings) {
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
          {"http-listen",
           "HOST:PORT",
           "of /healthz and /metrics; empty: none",
           text_into(settings.http_listen)}}}};
}

// All objects with process lifetime, in the order of their dependencies.
class NodeProgram {
public:
    NodeProgram(Settings settings, const control::AccessConfig& access)
        : settings_(std::move(settings)),
          access_(access, read_file, clock_),
          transport_(access_, transport_options(api_metrics_), clock_),
          client_(transport_, client_options(), clock_, client_stop_.get_token()),
          facts_(client_, clock_, {settings_.ns, settings_.daemonset}),
          host_root_(::open(settings_.host_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
          mounts_(make_mounts(settings_.kubelet_directory, kDriverName)),
          files_(
              fmt::format("{}/plugins/{}/files", settings_.kubelet_directory, kDriverName),
              {},
              *mounts_),
          publisher_({facts_, *mounts_, files_, host_root_.get(), {}}),
          keeper_({*mounts_, clock_, host_root_.get(), {}}) {}

    Status run(const std::stop_token& stop);

private:
    static control::RestTransportOptions transport_options(control::ApiMetrics& metrics) {
        control::RestTransportOptions options;
        options.user_agent = "stoker-node/" STOKER_VERSION " (linux)";
        options.metrics = &metrics;
        return options;
    }

    // The kubelet retries; one attempt must end before the kubelet's own limit of two minutes.
    static control::RestClientOptions client_options() {
        control::RestClientOptions options;
        options.field_manager = "stoker-node";
        options.time_limit = kApiTryLimit;
        return options;
    }

    Status start_http();
    http::ServerResponse answer(std::string_view path);
    void talk_to_operator(const std::stop_token& stop);
    void linger();

    Settings settings_;
    SystemClock clock_;
    control::AccessSource access_;
    control::ApiMetrics api_metrics_;
    control::RestTransport transport_;
    std::stop_source client_stop_;
    control::RestClient client_;
    ApiFacts facts_;
    UniqueFd host_root_;
    std::unique_ptr<Mounts> mounts_;
    FileMounts files_;
    Publisher publisher_;
    PoolKeeper keeper_;
    NodeMetrics metrics_;
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
        http_,
        http::HttpServer::start(std::move(options), [this](const http::ServerRequest& request) {
            return answer(request.path());
        }));
    return {};
}

http::ServerResponse NodeProgram::answer(std::string_view path) {
    if (path == "/healthz") {
        return {200, "text/plain", "ok\n"};
    }
    if (path == "/metrics") {
        return {
            200,
            std::string{metrics::Registry::kContentType},
            metrics_.expose() + api_metrics_.expose()};
    }
    return {404, "text/plain", "there are /healthz and /metrics\n"};
}

void NodeProgram::talk_to_operator(const std::stop_token& stop) {
    if (settings_.operator_endpoint.empty()) {
        return;
    }
    const auto client = make_operator_client(
        {settings_.operator_endpoint, settings_.ca_file, settings_.token_file});
    const std::string boot_id = read_filled_file("/proc/sys/kernel/random/boot_id").value_or("");
    OperatorLoop loop{
        keeper_, *client, {settings_.node, boot_id}, std::random_device{}(), metrics_};
    while (control::pause_until(clock_, clock_.now() + loop.step(), stop)) {
    }
}

// Without a driver the kubelet cannot unmount volumes, and ending pods would stay in Terminating
// for ever. So after an uninstallation this program stays until the last pod with a view has gone,
// or until its own grace period ends. A restart or an upgrade ends it at once, because the next
// process continues.
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
    files_.restore();
    STOKER_TRY(
        const auto server,
        CsiServer::start(
            {settings_.node, kDriverName, settings_.kubelet_directory}, publisher_, metrics_));
    talk_to_operator(stop);
    control::pause_until(clock_, TimePoint::max(), stop);
    linger();
    client_stop_.request_stop();
    return {};
}

int run_node(Settings settings, const control::AccessConfig& access, const std::stop_token& stop) {
    NodeProgram program{std::move(settings), access};
    return exit_status(program.run(stop));
}

int start(const std::vector<std::string_view>& arguments) {
    Settings settings;
    settings.node = environment("NODE_NAME");
    settings.ns = environment("POD_NAMESPACE");
    if (const auto done = begin_program(kName, flag_groups(settings), arguments)) {
        return *done;
    }
    if (settings.node.empty() || settings.ns.empty()) {
        return refuse_to_run(
            kName, {ErrorCode::kInvalidArgument, "--node and --namespace are needed"});
    }
    const auto access = control::in_cluster_access(environment);
    if (!access) {
        return refuse_to_run(kName, access.error());
    }
    return run_until_stopped(
        [&](const std::stop_token& stop) { return run_node(std::move(settings), *access, stop); });
}

}  // namespace
}  // namespace stoker::node

int main(int argc, char** argv) {
    // One arena for all threads, because each thread of gRPC would get its own, which keeps what its
    // largest call needed: 2.5 MiB more after 300 pods, 16 at a time, instead of 0.5. Calls are few,
    // so threads do not wait for each other (docs/quality.md).
    ::mallopt(M_ARENA_MAX, 1);
    return stoker::node::start({argv + 1, argv + argc});
}
