#include "operator/config/operator_config.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/base/quantity.h"
#include "common/config/address_ranges.h"
#include "common/config/config_reader.h"
#include "common/config/host_port.h"
#include "operator/api/shared_fields.h"

namespace stoker::control {

template <>
inline constexpr auto kFields<SidecarSettings> = table(
    field("image", &SidecarSettings::image),
    field("imagePullPolicy", &SidecarSettings::image_pull_policy),
    field("windowBytes", &SidecarSettings::window_bytes),
    field("metricsReaders", &SidecarSettings::metrics_readers),
    field("proxy", &SidecarSettings::proxy),
    field("resources", &SidecarSettings::resources),
    field("s3Port", &SidecarSettings::s3_port),
    field("s3Resources", &SidecarSettings::s3_resources),
    field("filesResources", &SidecarSettings::files_resources),
    field("packingResources", &SidecarSettings::packing_resources));

template <>
inline constexpr auto kFields<ControlSettings> = std::tuple{
    field("listen", &ControlSettings::listen),
    field("address", &ControlSettings::address),
    field("certificateDirectory", &ControlSettings::certificate_directory),
    field("caSecretName", &ControlSettings::ca_secret_name),
    field("trustConfigMapName", &ControlSettings::trust_config_map_name),
    field("leafLifetime", &ControlSettings::leaf_lifetime),
    field("caLifetime", &ControlSettings::ca_lifetime),
    field("caRenewal", &ControlSettings::ca_renewal),
    field("caOverlap", &ControlSettings::overlap),
    field("grantSeconds", &ControlSettings::grant_seconds)};

template <>
inline constexpr auto kFields<NodeSettings> =
    table(field("serviceAccount", &NodeSettings::service_account));

template <>
inline constexpr auto kFields<HttpSettings> = table(
    field("metrics", &HttpSettings::metrics),
    field("probes", &HttpSettings::probes),
    field("debug", &HttpSettings::debug));

template <>
inline constexpr auto kFields<WebhookSettings> = std::tuple{
    field("listen", &WebhookSettings::listen),
    field("hostName", &WebhookSettings::host_name),
    field("caSecretName", &WebhookSettings::ca_secret_name),
    field("configurationName", &WebhookSettings::configuration_name),
    field("leafLifetime", &WebhookSettings::leaf_lifetime),
    field("caLifetime", &WebhookSettings::ca_lifetime),
    field("caRenewal", &WebhookSettings::ca_renewal),
    field("caOverlap", &WebhookSettings::overlap)};

template <>
inline constexpr auto kFields<LeaderElectionSettings> = std::tuple{
    field("enabled", &LeaderElectionSettings::enabled),
    field("leaseName", &LeaderElectionSettings::lease_name),
    field("leaseDuration", &LeaderElectionSettings::lease),
    field("renewDeadline", &LeaderElectionSettings::renew_deadline),
    field("retryPeriod", &LeaderElectionSettings::retry)};

template <>
inline constexpr auto kFields<OperatorConfig> = table(
    field("sidecar", &OperatorConfig::sidecar),
    field("control", &OperatorConfig::control),
    field("node", &OperatorConfig::node),
    field("http", &OperatorConfig::http),
    field("webhook", &OperatorConfig::webhook),
    field("leaderElection", &OperatorConfig::leader_election),
    field("watchNamespaces", &OperatorConfig::watch_namespaces),
    field("workers", &OperatorConfig::workers));

namespace {

using config::ConfigReader;
using std::chrono::seconds;

constexpr std::uint32_t kGrantSecondsMin = 10;
constexpr std::uint32_t kGrantSecondsMax = 3600;
constexpr std::uint32_t kWorkersMax = 64;
constexpr std::uint32_t kPortMax = 65535;

void check_host_and_port(ConfigReader& in, std::string_view key, const std::string& value) {
    if (!value.empty() && !config::parse_host_port(value)) {
        in.mistake(key, fmt::format("\"{}\" must be host:port, such as [::]:8080", value));
    }
}

// Checks each setting's range, and settings that must be consistent.
void check(ConfigReader& in, const Resources& resources) {
    for (const auto& [key, quantities] :
         {std::pair{"requests", &resources.requests}, std::pair{"limits", &resources.limits}}) {
        for (const auto& [name, quantity] : *quantities) {
            if (!parse_bytes(quantity)) {
                in.mistake(
                    fmt::format("{}.{}", key, name),
                    fmt::format("\"{}\" is not a quantity", quantity));
            }
        }
    }
}

void check(ConfigReader& in, const SidecarSettings& sidecar) {
    if (sidecar.image.empty()) {
        in.mistake("image", "is required");
    }
    if (const auto ranges = config::AddressRanges::parse(sidecar.metrics_readers); !ranges) {
        in.mistake("metricsReaders", ranges.error().message);
    }
    for (const auto& [name, value] : sidecar.proxy) {
        if (std::ranges::find(kProxyVariables, name) == kProxyVariables.end()) {
            in.mistake(
                fmt::format("proxy.{}", name),
                fmt::format("must be one of {}", fmt::join(kProxyVariables, ", ")));
        }
    }
    if (sidecar.image_pull_policy != "Always" && sidecar.image_pull_policy != "IfNotPresent" &&
        sidecar.image_pull_policy != "Never") {
        in.mistake("imagePullPolicy", "must be Always, IfNotPresent or Never");
    }
    if (sidecar.s3_port < 1 || sidecar.s3_port > kPortMax) {
        in.mistake("s3Port", fmt::format("must be 1 to {}", kPortMax));
    }
    if (sidecar.window_bytes < mib(1) || sidecar.window_bytes.is_unlimited()) {
        in.mistake("windowBytes", "must be a number of bytes, at least 1Mi");
    }
}

void check_terms(ConfigReader& in, const AuthorityTerms& terms) {
    const bool ordered = terms.leaf_lifetime >= seconds{3} && terms.overlap >= Duration::zero() &&
                         terms.ca_renewal >= terms.overlap + terms.leaf_lifetime &&
                         terms.ca_lifetime > terms.ca_renewal;
    if (!ordered) {
        in.mistake(
            "caLifetime",
            "must be longer than caRenewal, and caRenewal at least caOverlap plus leafLifetime");
    }
}

void check(ConfigReader& in, const ControlSettings& control) {
    if (control.address.empty()) {
        in.mistake("address", "is required");
    }
    check_host_and_port(in, "listen", control.listen);
    check_host_and_port(in, "address", control.address);
    if (control.grant_seconds < kGrantSecondsMin || control.grant_seconds > kGrantSecondsMax) {
        in.mistake(
            "grantSeconds", fmt::format("must be {} to {}", kGrantSecondsMin, kGrantSecondsMax));
    }
    if (control.certificate_directory.empty() && control.ca_secret_name.empty()) {
        in.mistake("caSecretName", "is required without a certificateDirectory");
    }
    check_terms(in, control);
}

void check(ConfigReader& in, const WebhookSettings& webhook) {
    check_host_and_port(in, "listen", webhook.listen);
    check_terms(in, webhook);
    if (webhook.listen.empty()) {
        return;
    }
    for (const auto& [key, value] :
         {std::pair{"hostName", &webhook.host_name},
          std::pair{"caSecretName", &webhook.ca_secret_name},
          std::pair{"configurationName", &webhook.configuration_name}}) {
        if (value->empty()) {
            in.mistake(key, "is required with listen");
        }
    }
}

void check(ConfigReader& in, const NodeSettings& node) {
    if (node.service_account.empty()) {
        in.mistake("serviceAccount", "is required");
    }
}

void check(ConfigReader& in, const HttpSettings& http) {
    check_host_and_port(in, "metrics", http.metrics);
    check_host_and_port(in, "probes", http.probes);
    check_host_and_port(in, "debug", http.debug);
    if (http.probes.empty()) {
        in.mistake("probes", "is required");
    }
}

void check(ConfigReader& in, const LeaderElectionSettings& election) {
    if (election.enabled && election.lease_name.empty()) {
        in.mistake("leaseName", "is required");
    }
    if (!is_valid(election)) {
        in.mistake(
            "leaseDuration",
            "must be longer than renewDeadline, and renewDeadline longer than 1.2 times "
            "retryPeriod");
    }
}

void check(ConfigReader& in, const OperatorConfig& config) {
    for (const std::string_view section : {"sidecar", "control"}) {
        if (!in.has(section)) {
            in.mistake(section, "is required");
        }
    }
    const std::set<std::string> different(
        config.watch_namespaces.begin(), config.watch_namespaces.end());
    if (different.size() != config.watch_namespaces.size() || different.contains("")) {
        in.mistake("watchNamespaces", "must be different names");
    }
    if (config.workers < 1 || config.workers > kWorkersMax) {
        in.mistake("workers", fmt::format("must be 1 to {}", kWorkersMax));
    }
}

// Reads a section by its table, then checks it. An absent section keeps its defaults.
template <HasFields T>
void read_section(ConfigReader& in, T& section) {
    for_each_field(section, [&]<class Value>(const auto& field, Value& value) {
        if constexpr (HasFields<Value>) {
            in.section(field.name, [&](ConfigReader& inner) { read_section(inner, value); });
        } else {
            in.read(field.name, value);
        }
    });
    check(in, section);
}

std::string yaml_of(const std::string& text) {
    return fmt::format("\"{}\"", text);
}

std::string yaml_of(Bytes bytes) {
    return fmt::format("{}", bytes.count());
}

std::string yaml_of(Duration duration) {
    return fmt::format(
        "{}ms", std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

std::string yaml_of(const TextMap& map) {
    std::vector<std::string> members;
    for (const auto& [name, value] : map) {
        members.push_back(yaml_of(name) + ": " + yaml_of(value));
    }
    return fmt::format("{{{}}}", fmt::join(members, ", "));
}

std::string yaml_of(const std::vector<std::string>& texts) {
    return fmt::format("[{:?}]", fmt::join(texts, ", "));
}

template <HasFields T>
std::string yaml_of(const T& section, const std::string& indent) {
    std::string text;
    for_each_field(section, [&]<class Value>(const auto& field, const Value& value) {
        text += fmt::format("{}{}:", indent, field.name);
        if constexpr (HasFields<Value>) {
            text += '\n' + yaml_of(value, indent + "  ");
        } else if constexpr (requires { yaml_of(value); }) {
            text += fmt::format(" {}\n", yaml_of(value));
        } else {
            text += fmt::format(" {}\n", value);
        }
    });
    return text;
}

}  // namespace

Result<OperatorConfig> parse_operator_config(std::string_view text) {
    STOKER_TRY(auto in, ConfigReader::parse(text));
    OperatorConfig out;
    read_section(in, out);
    STOKER_TRY_VOID(in.finish());
    return out;
}

std::string to_yaml(const OperatorConfig& config) {
    return yaml_of(config, "");
}

}  // namespace stoker::control
