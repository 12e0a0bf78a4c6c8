#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/training_job.h"
#include "operator/certificates/authority.h"
#include "operator/kube/lease.h"

namespace stoker::control {

// What the operator puts into every training pod.
struct SidecarSettings {
    std::string image;
    std::string image_pull_policy = "IfNotPresent";
    Bytes window_bytes = mib(256);
    // Address ranges that may read a sidecar's /metrics and /status in CIDR form, besides its own
    // pod.
    std::vector<std::string> metrics_readers;
    TextMap proxy;  // by kProxyVariables
    Resources resources;

    bool operator==(const SidecarSettings&) const = default;
};

// The gRPC service that sidecars attach to, and the terms of the CA that the operator makes for it
// (docs/adr/0009-the-operator-is-its-own-ca.md).
struct ControlSettings : AuthorityTerms {
    std::string listen = "[::]:9443";
    std::string address;  // host:port as pods reach it
    // tls.crt, tls.key and ca.crt that somebody else renews; "": the operator is its own CA.
    std::string certificate_directory;
    std::string ca_secret_name = "stoker-control-ca";  // in the operator's own namespace
    // Where it publishes what callers must trust, for the node program; "": nowhere.
    std::string trust_config_map_name = "stoker-control-trust";
    std::uint32_t grant_seconds = 60;

    bool operator==(const ControlSettings&) const = default;
};

// The node programs, which call the same service.
struct NodeSettings {
    std::string service_account = "stoker-node";  // in the operator's own namespace

    bool operator==(const NodeSettings&) const = default;
};

// The network policy decides which peers reach them.
struct HttpSettings {
    std::string metrics = "[::]:8080";  // /metrics; "": not served
    std::string probes = "[::]:8081";   // /healthz, /readyz
    std::string debug = "[::]:8443";    // HTTPS: /debug/allocation; "": not served

    bool operator==(const HttpSettings&) const = default;
};

struct LeaderElectionSettings : LeaseTiming {
    bool enabled = true;
    std::string lease_name = "stoker-operator";

    bool operator==(const LeaderElectionSettings&) const = default;
};

struct OperatorConfig {
    SidecarSettings sidecar;
    ControlSettings control;
    NodeSettings node;
    LeaderElectionSettings leader_election;
    HttpSettings http;
    // Objects of these namespaces only; none: of all. The node program and RBAC must fit.
    std::vector<std::string> watch_namespaces;
    std::uint32_t workers = 4;  // objects that are worked on at once

    bool operator==(const OperatorConfig&) const = default;
};

// docs/reference/operator-config.md. kInvalidArgument: every mistake with its path, one a line.
Result<OperatorConfig> parse_operator_config(std::string_view text);

// The settings in force, for the log and --check-config: YAML that parses to an equal value.
std::string to_yaml(const OperatorConfig& config);

}  // namespace stoker::control
