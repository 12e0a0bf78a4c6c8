#include "operator/config/operator_config.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/base/quantity.h"
#include "common/config/address_ranges.h"
#include "common/config/config_reader.h"
#include "common/config/host_port.h"
#include "operator/api/training_job.h"

namespace stoker::control {

namespace {

using config::ConfigReader;
using std::chrono::seconds;

constexpr std::uint32_t kGrantSecondsMin = 10;
constexpr std::uint32_t kGrantSecondsMax = 3600;
constexpr std::uint32_t kWorkersMax = 64;

void check_host_and_port(ConfigReader& in, std::string_view key, const std::string& value) {
    if (!value.empty() && !config::parse_host_port(value)) {
        in.mistake(key, fmt::format("\"{}\" must be host:port, such as [::]:8080", value));
    }
}

void check_quantities(ConfigReader& in, std::string_view key, const TextMap& resources) {
    for (const auto& [name, quantity] : resources) {
        if (!parse_bytes(quantity)) {
            in.mistake(
                fmt::format("{}.{}", key, name), fmt::format("\"{}\" is no quantity", quantity));
        }
    }
}

void read_proxy(ConfigReader& in, TextMap& out) {
    in.read("proxy", out);
    for (const auto& [name, value] : out) {
        if (std::ranges::find(kProxyVariables, name) == kProxyVariables.end()) {
            in.mistake(
                fmt::format("proxy.{}", name),
                fmt::format("must be one of {}", fmt::join(kProxyVariables, ", ")));
        }
    }
}

void read_sidecar(ConfigReader& in, SidecarSettings& out) {
    in.require("image", out.image);
    in.read("imagePullPolicy", out.image_pull_policy);
    in.read("windowBytes", out.window_bytes);
    in.read("metricsReaders", out.metrics_readers);
    if (const auto ranges = config::AddressRanges::parse(out.metrics_readers); !ranges) {
        in.mistake("metricsReaders", ranges.error().message);
    }
    read_proxy(in, out.proxy);
    in.section("resources", [&](ConfigReader& resources) {
        resources.read("requests", out.requests);
        resources.read("limits", out.limits);
        check_quantities(resources, "requests", out.requests);
        check_quantities(resources, "limits", out.limits);
    });
    if (out.image_pull_policy != "Always" && out.image_pull_policy != "IfNotPresent" &&
        out.image_pull_policy != "Never") {
        in.mistake("imagePullPolicy", "must be Always, IfNotPresent or Never");
    }
    if (out.window_bytes < mib(1) || out.window_bytes.is_unlimited()) {
        in.mistake("windowBytes", "must be a number of bytes from 1Mi on");
    }
}

void read_authority(ConfigReader& in, ControlSettings& out) {
    in.read("caSecretName", out.ca_secret_name);
    in.read("trustConfigMapName", out.trust_config_map_name);
    in.read("leafLifetime", out.leaf_lifetime);
    in.read("caLifetime", out.ca_lifetime);
    in.read("caRenewal", out.ca_renewal);
    in.read("caOverlap", out.ca_overlap);
    if (out.certificate_directory.empty() && out.ca_secret_name.empty()) {
        in.mistake("caSecretName", "is required without a certificateDirectory");
    }
    const bool ordered = out.leaf_lifetime >= seconds{3} && out.ca_overlap >= Duration::zero() &&
                         out.ca_renewal >= out.ca_overlap + out.leaf_lifetime &&
                         out.ca_lifetime > out.ca_renewal;
    if (!ordered) {
        in.mistake(
            "caLifetime",
            "must be longer than caRenewal, and that at least caOverlap and leafLifetime together");
    }
}

void read_http(ConfigReader& in, HttpSettings& out) {
    for (const auto& [key, value] :
         {std::pair{"metrics", &out.metrics},
          std::pair{"probes", &out.probes},
          std::pair{"debug", &out.debug}}) {
        in.read(key, *value);
        check_host_and_port(in, key, *value);
    }
    if (out.probes.empty()) {
        in.mistake("probes", "is required");
    }
}

void read_control(ConfigReader& in, ControlSettings& out) {
    in.read("listen", out.listen);
    in.require("address", out.address);
    in.read("certificateDirectory", out.certificate_directory);
    in.read("grantSeconds", out.grant_seconds);
    check_host_and_port(in, "listen", out.listen);
    check_host_and_port(in, "address", out.address);
    if (out.grant_seconds < kGrantSecondsMin || out.grant_seconds > kGrantSecondsMax) {
        in.mistake(
            "grantSeconds", fmt::format("must be {} to {}", kGrantSecondsMin, kGrantSecondsMax));
    }
    read_authority(in, out);
}

void read_leader_election(ConfigReader& in, LeaderElectionSettings& out) {
    in.read("enabled", out.enabled);
    in.read("leaseName", out.lease_name);
    in.read("leaseDuration", out.lease_duration);
    in.read("renewDeadline", out.renew_deadline);
    in.read("retryPeriod", out.retry_period);
    if (out.enabled && out.lease_name.empty()) {
        in.mistake("leaseName", "is required");
    }
    const bool ordered = out.lease_duration > out.renew_deadline &&
                         out.renew_deadline > out.retry_period * 12 / 10 &&
                         out.retry_period > Duration::zero() && out.lease_duration >= seconds{1};
    if (!ordered) {
        in.mistake(
            "leaseDuration",
            "must be longer than renewDeadline, and that longer than 1.2 times retryPeriod");
    }
}

std::string yaml_of(const TextMap& map) {
    std::string text;
    for (const auto& [name, value] : map) {
        text += fmt::format("{}\"{}\": \"{}\"", text.empty() ? "" : ", ", name, value);
    }
    return "{" + text + "}";
}

std::string yaml_of(const std::vector<std::string>& texts) {
    std::string text;
    for (const std::string& one : texts) {
        text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", one);
    }
    return "[" + text + "]";
}

std::string milliseconds_of(Duration duration) {
    return fmt::format(
        "{}ms", std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

Result<OperatorConfig> parse_operator_config(std::string_view text) {
    STOKER_TRY(auto in, ConfigReader::parse(text));
    OperatorConfig out;
    for (const std::string_view section : {"sidecar", "control"}) {
        if (!in.has(section)) {
            in.mistake(section, "is required");
        }
    }
    in.section("sidecar", [&](ConfigReader& section) { read_sidecar(section, out.sidecar); });
    in.section("control", [&](ConfigReader& section) { read_control(section, out.control); });
    in.section("node", [&](ConfigReader& node) {
        node.read("serviceAccount", out.node.service_account);
        if (out.node.service_account.empty()) {
            node.mistake("serviceAccount", "is required");
        }
    });
    in.section("http", [&](ConfigReader& section) { read_http(section, out.http); });
    in.section("leaderElection", [&](ConfigReader& section) {
        read_leader_election(section, out.leader_election);
    });
    in.read("watchNamespaces", out.watch_namespaces);
    const std::set<std::string> different(out.watch_namespaces.begin(), out.watch_namespaces.end());
    if (different.size() != out.watch_namespaces.size() || different.contains("")) {
        in.mistake("watchNamespaces", "must be different names");
    }
    in.read("workers", out.workers);
    if (out.workers < 1 || out.workers > kWorkersMax) {
        in.mistake("workers", fmt::format("must be 1 to {}", kWorkersMax));
    }
    STOKER_TRY_VOID(in.finish());
    return out;
}

std::string to_yaml(const OperatorConfig& config) {
    return fmt::format(
        "sidecar:\n"
        "  image: \"{}\"\n"
        "  imagePullPolicy: {}\n"
        "  windowBytes: {}\n"
        "  metricsReaders: {}\n"
        "  proxy: {}\n"
        "  resources: {{requests: {}, limits: {}}}\n"
        "control:\n"
        "  listen: \"{}\"\n"
        "  address: \"{}\"\n"
        "  certificateDirectory: \"{}\"\n"
        "  caSecretName: \"{}\"\n"
        "  trustConfigMapName: \"{}\"\n"
        "  leafLifetime: {}\n"
        "  caLifetime: {}\n"
        "  caRenewal: {}\n"
        "  caOverlap: {}\n"
        "  grantSeconds: {}\n"
        "node: {{serviceAccount: \"{}\"}}\n"
        "http: {{metrics: \"{}\", probes: \"{}\", debug: \"{}\"}}\n"
        "leaderElection:\n"
        "  enabled: {}\n"
        "  leaseName: \"{}\"\n"
        "  leaseDuration: {}\n"
        "  renewDeadline: {}\n"
        "  retryPeriod: {}\n"
        "watchNamespaces: [{}]\n"
        "workers: {}\n",
        config.sidecar.image,
        config.sidecar.image_pull_policy,
        config.sidecar.window_bytes.count(),
        yaml_of(config.sidecar.metrics_readers),
        yaml_of(config.sidecar.proxy),
        yaml_of(config.sidecar.requests),
        yaml_of(config.sidecar.limits),
        config.control.listen,
        config.control.address,
        config.control.certificate_directory,
        config.control.ca_secret_name,
        config.control.trust_config_map_name,
        milliseconds_of(config.control.leaf_lifetime),
        milliseconds_of(config.control.ca_lifetime),
        milliseconds_of(config.control.ca_renewal),
        milliseconds_of(config.control.ca_overlap),
        config.control.grant_seconds,
        config.node.service_account,
        config.http.metrics,
        config.http.probes,
        config.http.debug,
        config.leader_election.enabled,
        config.leader_election.lease_name,
        milliseconds_of(config.leader_election.lease_duration),
        milliseconds_of(config.leader_election.renew_deadline),
        milliseconds_of(config.leader_election.retry_period),
        fmt::join(config.watch_namespaces, ", "),
        config.workers);
}

}  // namespace stoker::control
