// Composition root of stoker-operator: reads its settings, builds the parts, runs them.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/read_file.h"
#include "common/config/host_port.h"
#include "common/flags/flags.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/program/program.h"
#include "common/runtime/named_thread.h"
#include "common/runtime/worker_pool.h"
#include "operator/api/debug_api.h"
#include "operator/config/operator_config.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/grants/allocation_page.h"
#include "operator/controllers/manager.h"
#include "operator/controllers/operator_metrics.h"
#include "operator/core/workload/build_pod.h"
#include "operator/endpoints/endpoints.h"
#include "operator/endpoints/probe.h"
#include "operator/kube/access.h"
#include "operator/kube/pause.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/leader_elector.h"
#include "operator/runtime/supervisor.h"
#include "operator/sidecars/certificate_keeper.h"
#include "operator/sidecars/control_service.h"
#include "operator/sidecars/local_authenticator.h"
#include "operator/sidecars/secret_authority.h"
#include "operator/sidecars/token_review.h"
#include "operator/sidecars/trust_publisher.h"
#include "operator/webhook/webhook.h"

namespace stoker::control {
namespace {

constexpr const char* kFieldManager = "stoker-operator";  // also the program's name
constexpr const char* kControllerName = "stoker.dev/operator";
constexpr Duration kControlRetry = std::chrono::seconds{5};
constexpr Duration kControlStep = std::chrono::seconds{1};
constexpr std::size_t kTokenReviewThreads = 4;

std::string environment_or(const char* name, const std::string& fallback) {
    const std::string value = environment(name);
    return value.empty() ? fallback : value;
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

struct Flags {
    std::string config_file;
    std::string api_server;
    std::string probe_url;
    bool check_config = false;
};

std::vector<FlagGroup> flag_groups(Flags& flags) {
    return {
        {"Settings",
         {{"config",
           "FILE",
           "the settings (docs/reference/operator-config.md)",
           text_into(flags.config_file)},
          {"api-server",
           "URL",
           "of `kubectl proxy`, outside of a cluster; without it the pod's own account",
           text_into(flags.api_server)}}},
        {"Instead of running",
         {{"check-config",
           "",
           "read the settings, print them, and exit",
           switch_into(flags.check_config)},
          {"probe",
           "URL",
           "ask it, and exit with 0 if it answers 200",
           text_into(flags.probe_url)}}}};
}

Result<AccessConfig> find_access(const Flags& flags) {
    if (flags.api_server.empty()) {
        return in_cluster_access(environment);
    }
    return AccessConfig{flags.api_server, {}, {}, {}};
}

JobSettings job_settings(const OperatorConfig& config) {
    JobSettings settings;
    settings.sidecar_image = config.sidecar.image;
    settings.sidecar_image_pull_policy = config.sidecar.image_pull_policy;
    settings.sidecar_resources = config.sidecar.resources;
    settings.s3_port = static_cast<std::int32_t>(config.sidecar.s3_port);
    settings.s3_resources = config.sidecar.s3_resources;
    settings.files_resources = config.sidecar.files_resources;
    settings.packing_resources = config.sidecar.packing_resources;
    settings.sidecar_proxy = config.sidecar.proxy;
    settings.window_bytes = config.sidecar.window_bytes;
    settings.metrics_readers = config.sidecar.metrics_readers;
    settings.control_address = config.control.address;
    settings.sidecar_peer_port = config.control.signs_peers() ? settings.sidecar_peer_port : 0;
    return settings;
}

// All objects with process lifetime, in the order of their dependencies.
class Operator {
public:
    Operator(OperatorConfig config, const AccessConfig& access);

    Supervisor::End run(const std::stop_token& stop);

private:
    std::unique_ptr<RestTransport> make_transport(const std::string& component);
    ManagerSettings manager_settings();
    SecretAuthority::Options authority_options() const;
    Result<ServedCertificate> load_certificate();
    EndpointSources endpoint_sources();
    Webhook::Parts webhook_parts();
    void assemble();
    Status ready();
    Leadership leadership();
    void serve_sidecars(const std::stop_token& stop);

    SystemClock clock_;
    OperatorConfig config_;
    std::string pod_name_;
    std::string own_namespace_;
    std::uint64_t seed_;
    AccessSource access_;
    ApiMetrics api_metrics_;
    std::unique_ptr<RestTransport> lease_transport_;
    std::unique_ptr<RestTransport> event_transport_;
    std::unique_ptr<RestTransport> transport_;
    std::unique_ptr<RestTransport> review_transport_;
    std::unique_ptr<RestTransport> webhook_transport_;
    LeaderElector elector_;
    std::stop_source client_stop_;
    RestClient client_;
    // Also before we lead. Separate: a flood of bad tokens must not use up client_'s requests.
    RestClient review_client_;
    RestClient authority_client_;
    SecretAuthority authority_;
    TrustPublisher trust_;
    CertificateKeeper certificate_;
    EventRecorder events_;
    ClusterCache cache_;
    Manager manager_;
    OperatorMetrics metrics_;
    TokenReviewAuthenticator reviews_;
    LocalAuthenticator authenticator_;
    std::optional<WorkerPool> token_pool_;
    Endpoints endpoints_;
    std::optional<Webhook> webhook_;
    Supervisor supervisor_;
};

Operator::Operator(OperatorConfig config, const AccessConfig& access)
    : config_(std::move(config)),
      pod_name_(environment_or("POD_NAME", host_name())),
      own_namespace_(environment_or("POD_NAMESPACE", "stoker-system")),
      seed_(random_seed()),
      access_(access, read_file, clock_),
      lease_transport_(make_transport("lease")),
      event_transport_(make_transport("events")),
      transport_(make_transport("controllers")),
      review_transport_(make_transport("reviews")),
      webhook_transport_(make_transport("webhook")),
      elector_(
          *lease_transport_,
          {{own_namespace_, config_.leader_election.lease_name},
           fmt::format("{}_{:016x}", pod_name_, seed_),
           static_cast<const LeaseTiming&>(config_.leader_election)},
          clock_,
          seed_),
      client_(
          *transport_,
          {kFieldManager},
          clock_,
          client_stop_.get_token(),
          [this] { return !config_.leader_election.enabled || elector_.may_write(); }),
      review_client_(*review_transport_, {kFieldManager}, clock_, client_stop_.get_token()),
      authority_client_(*review_transport_, {kFieldManager}, clock_, client_stop_.get_token()),
      authority_(authority_client_, authority_options(), clock_),
      trust_(authority_client_, {own_namespace_, config_.control.trust_config_map_name}, clock_),
      certificate_([this] { return load_certificate(); }, clock_, {}),
      events_(*event_transport_, {{kControllerName, pod_name_}}, clock_, seed_ + 1),
      cache_(
          [this](const std::string& component) { return make_transport(component); },
          own_namespace_,
          config_.watch_namespaces,
          clock_,
          seed_ + 2),
      manager_({cache_, client_, events_, clock_}, manager_settings()),
      metrics_(
          {manager_,
           cache_,
           events_,
           config_.leader_election.enabled ? &elector_ : nullptr,
           clock_,
           api_metrics_,
           &certificate_,
           &authenticator_,
           [this] {
               return webhook_ ? webhook_->outcomes() : std::map<std::string, std::uint64_t>{};
           }}),
      reviews_(
          [this](const std::string& token) {
              return review_client_.review_token(token, {std::string{kTokenAudience}});
          },
          [this](std::function<void()> task) { token_pool_->post(std::move(task)); },
          clock_,
          {}),
      authenticator_(
          {std::string{kTokenAudience}},
          [this](const ObjectKey& pod) { return living_pod(pod, cache_); },
          [this](const std::string& path) { return review_client_.get_page(path); },
          reviews_,
          clock_),
      endpoints_(
          {config_.http.metrics, config_.http.probes, config_.http.debug},
          endpoint_sources(),
          clock_),
      supervisor_(start_thread, clock_) {
    token_pool_.emplace("token-review", kTokenReviewThreads);
    if (!config_.webhook.listen.empty()) {
        webhook_.emplace(config_.webhook, webhook_parts(), client_stop_.get_token());
    }
    assemble();
}

std::unique_ptr<RestTransport> Operator::make_transport(const std::string& component) {
    const RestTransportOptions options{
        .user_agent = fmt::format("stoker-operator/{} (linux) {}", STOKER_VERSION, component),
        .metrics = &api_metrics_};
    return std::make_unique<RestTransport>(access_, options, clock_);
}

ManagerSettings Operator::manager_settings() {
    ManagerSettings settings;
    settings.job = job_settings(config_);
    // Controllers start only after the first certificate exists.
    settings.control_ca = [this] { return certificate_.current()->trust; };
    if (config_.control.signs_peers()) {
        settings.issue_peer = [this](const auto& request, const auto& uris) {
            return authority_.issue_peer(request, uris);
        };
    }
    settings.adopts_workloads = !config_.webhook.listen.empty();
    settings.grant_seconds = config_.control.grant_seconds;
    settings.workers = config_.workers;
    return settings;
}

Webhook::Parts Operator::webhook_parts() {
    return {
        cache_, *webhook_transport_, authority_client_, events_, clock_, own_namespace_, [this] {
            return manager_.job_settings();
        }};
}

void Operator::assemble() {
    supervisor_.add_service(
        {"http", [this] { return endpoints_.start(); }, [this] { endpoints_.stop(); }});
    certificate_.add_listener(
        [this](const ServedCertificate& now) { endpoints_.use_certificate(now); });
    supervisor_.add_cache(
        "certificate",
        [this](const std::stop_token& stop) { certificate_.run(stop); },
        [this] { return certificate_.has_one(); });
    supervisor_.add_cache(
        "token-keys",
        [this](const std::stop_token& stop) { authenticator_.run(stop); },
        [] { return true; });  // without keys, tokens are reviewed
    for (ClusterCache::Watch& watch : cache_.watches()) {
        supervisor_.add_cache(watch.name, std::move(watch.run), std::move(watch.has_synced));
    }
    if (webhook_) {
        webhook_->add_to(supervisor_);
    }
    manager_.add_to(supervisor_);
    supervisor_.add_worker(
        "control", [this](const std::stop_token& stop) { serve_sidecars(stop); }, 1);
    // Abandon all calls that still wait for the API server.
    supervisor_.add_drain([this](TimePoint) { client_stop_.request_stop(); });
    supervisor_.set_event_writer([this](const std::stop_token& stop) { events_.run(stop); });
    if (config_.leader_election.enabled) {
        supervisor_.set_elector(elector_, [] {
            log::error("leadership lost");
            std::_Exit(EXIT_FAILURE);
        });
    }
}

Supervisor::End Operator::run(const std::stop_token& stop) {
    const Supervisor::End end = supervisor_.run(stop);
    token_pool_.reset();
    return end;
}

SecretAuthority::Options Operator::authority_options() const {
    const auto address = config::parse_host_port(config_.control.address);
    return {
        {own_namespace_, config_.control.ca_secret_name},
        {address->host},  // parse_operator_config() has checked it
        static_cast<const AuthorityTerms&>(config_.control)};
}

Result<ServedCertificate> Operator::load_certificate() {
    const std::string& directory = config_.control.certificate_directory;
    STOKER_TRY(
        ServedCertificate served,
        directory.empty() ? authority_.load() : read_served_certificate(directory));
    if (const Status published = trust_.publish(served.trust); !published) {
        log::warning("cannot publish the CA", {{"error", published.error().message}});
    }
    return served;
}

Status Operator::ready() {
    std::vector<std::string> missing = cache_.unsynced();
    if (!certificate_.has_one()) {
        missing.emplace_back("certificate");
    }
    if (!missing.empty()) {
        return fail(
            ErrorCode::kUnavailable, fmt::format("not listed yet: {}", fmt::join(missing, ", ")));
    }
    return {};
}

EndpointSources Operator::endpoint_sources() {
    EndpointSources sources;
    sources.metrics = [this] { return metrics_.expose(); };
    // Must not depend on the API server: a restart would not fix that.
    sources.healthy = [this]() -> Status {
        return elector_.is_healthy() ? Status{}
                                     : fail(ErrorCode::kUnavailable, "lease not renewed");
    };
    sources.ready = [this] { return ready(); };
    sources.debug_pages[kAllocationPath] = [this] {
        PageAnswer page = allocation_page(
            *manager_.latest().get(), clock_.wall_now(), STOKER_VERSION, leadership());
        return http::ServerResponse{page.status, "application/json", std::move(page.body)};
    };
    sources.identify = [this](const std::string& token) {
        return review_client_.review_token(token, {std::string{kDebugAudience}});
    };
    sources.authorize = [this](const TokenOwner& owner, const std::string& path) {
        return review_client_.review_access(owner, "get", path);
    };
    return sources;
}

Leadership Operator::leadership() {
    return config_.leader_election.enabled ? Leadership{elector_.may_write(), elector_.holder()}
                                           : Leadership{true, pod_name_};
}

// Runs while this replica leads.
void Operator::serve_sidecars(const std::stop_token& stop) {
    ControlServiceOptions options;
    options.listen = config_.control.listen;
    options.certificate = [this] { return certificate_.current(); };
    options.signs_peers = config_.control.signs_peers();
    std::unique_ptr<ControlService> service;
    do {
        if (!service) {
            auto started = ControlService::start(
                options,
                manager_.registry(),
                manager_.node_programs({own_namespace_, config_.node.service_account}),
                authenticator_,
                clock_);
            if (started) {
                service = *std::move(started);
                log::info("serving sidecars", {{"port", service->port()}});
            } else {
                log::error("cannot serve sidecars", {{"error", started.error().message}});
            }
        } else {
            service->step(clock_.now());
        }
    } while (pause_until(clock_, clock_.now() + (service ? kControlStep : kControlRetry), stop));
}

int run_operator(OperatorConfig config, const AccessConfig& access, const std::stop_token& stop) {
    log::info("starting", {{"version", STOKER_VERSION}, {"settings", to_yaml(config)}});
    Operator process{std::move(config), access};
    return process.run(stop) == Supervisor::End::kStopped ? EXIT_SUCCESS : EXIT_FAILURE;
}

Result<OperatorConfig> load_config(const Flags& flags) {
    if (flags.config_file.empty()) {
        return fail(ErrorCode::kInvalidArgument, "--config is required");
    }
    STOKER_TRY(const std::string text, read_file(flags.config_file));
    auto config = parse_operator_config(text);
    return config ? std::move(config) : fail(config.error().prefixed(flags.config_file));
}

int start(const std::vector<std::string_view>& arguments) {
    Flags flags;
    if (const auto done = begin_program(kFieldManager, flag_groups(flags), arguments)) {
        return *done;
    }
    if (!flags.probe_url.empty()) {
        return probe(flags.probe_url);
    }
    auto config = load_config(flags);
    if (!config) {
        return refuse_to_run(kFieldManager, config.error());
    }
    if (flags.check_config) {
        fmt::print("{}", to_yaml(*config));
        return EXIT_SUCCESS;
    }
    const auto access = find_access(flags);
    if (!access) {
        return refuse_to_run(kFieldManager, access.error());
    }
    return run_until_stopped([&](const std::stop_token& stop) {
        return run_operator(*std::move(config), *access, stop);
    });
}

}  // namespace
}  // namespace stoker::control

int main(int argc, char** argv) {
    return stoker::control::start({argv + 1, argv + argc});
}
