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

// Settings of the sidecar in every training pod.
struct SidecarSettings {
    std::string image;
    std::string image_pull_policy = "IfNotPresent";
    Bytes window_bytes = mib(256);
    // Address ranges in CIDR form that may read a sidecar's /metrics and /status; its own pod
    // always may.
    std::vector<std::string> metrics_readers;
    TextMap proxy;  // by kProxyVariables
    Resources resources;
    std::uint32_t s3_port = 9711;  // of stoker-s3, on the loopback of pods with access S3
    Resources s3_resources{{{"memory", "256Mi"}}, {{"cpu", "50m"}, {"memory", "64Mi"}}};
    Resources files_resources{{{"memory", "512Mi"}}, {{"cpu", "50m"}, {"memory", "64Mi"}}};
    Resources packing_resources{{{"memory", "2Gi"}}, {{"cpu", "200m"}, {"memory", "512Mi"}}};

    bool operator==(const SidecarSettings&) const = default;
};

// The gRPC service for sidecars, and the validity of the CA that the operator creates for it
// (docs/adr/0009-the-operator-is-its-own-ca.md).
struct ControlSettings : AuthorityTerms {
    std::string listen = "[::]:9443";
    std::string address;  // host:port as pods reach it
    // Folder with tls.crt, tls.key and ca.crt that another system renews; "": the operator is its
    // own CA.
    std::string certificate_directory;
    std::string ca_secret_name = "stoker-control-ca";  // in the operator's own namespace
    // ConfigMap with the CA certificates that callers must trust, for the node program; "": none.
    std::string trust_config_map_name = "stoker-control-trust";
    std::uint32_t grant_seconds = 60;

    // Whether the operator signs peer certificates. It cannot with an administrator's own CA; nodes
    // then share no samples.
    [[nodiscard]] bool signs_peers() const { return certificate_directory.empty(); }

    bool operator==(const ControlSettings&) const = default;
};

// Identity of the node programs, which call the same gRPC service as sidecars.
struct NodeSettings {
    std::string service_account = "stoker-node";  // in the operator's own namespace

    bool operator==(const NodeSettings&) const = default;
};

// Listening addresses; the network policy decides which peers reach them.
struct HttpSettings {
    std::string metrics = "[::]:8080";  // /metrics; "": not served
    std::string probes = "[::]:8081";   // /healthz, /readyz
    std::string debug = "[::]:8443";    // HTTPS: /debug/allocation; "": not served

    bool operator==(const HttpSettings&) const = default;
};

// The webhook for pods of other controllers, and the validity of its CA
// (docs/adr/0020-foreign-pods.md). The operator signs its certificates.
struct WebhookSettings : AuthorityTerms {
    std::string listen;                                // "[::]:9444"; "": no webhook
    std::string host_name;                             // of its Service, as the API server calls it
    std::string ca_secret_name = "stoker-webhook-ca";  // in the operator's own namespace
    // The MutatingWebhookConfiguration whose caBundle the operator sets and renews.
    std::string configuration_name = "stoker-webhook";

    bool operator==(const WebhookSettings&) const = default;
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
    WebhookSettings webhook;
    // Watches only these namespaces; empty: all. The node program and RBAC must use the same list.
    std::vector<std::string> watch_namespaces;
    std::uint32_t workers = 4;  // objects that are reconciled at once

    bool operator==(const OperatorConfig&) const = default;
};

// Format: docs/reference/operator-config.md. kInvalidArgument: every mistake with its path, one per
// line.
Result<OperatorConfig> parse_operator_config(std::string_view text);

// The effective settings, for the log and --check-config: YAML that parses to an equal value.
std::string to_yaml(const OperatorConfig& config);

}  // namespace stoker::control
