#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/meta.h"

namespace stoker::control {

// What the operator puts into every training pod.
struct SidecarSettings {
    std::string image;
    std::string image_pull_policy = "IfNotPresent";
    Bytes window_bytes = mib(256);
    TextMap requests;  // quantities by resource name
    TextMap limits;

    bool operator==(const SidecarSettings&) const = default;
};

// The gRPC service that sidecars attach to.
struct ControlSettings {
    std::string listen = "[::]:9443";
    std::string address;  // host:port as pods reach it
    std::string certificate_directory = "/etc/stoker/tls";
    std::uint32_t grant_seconds = 60;

    bool operator==(const ControlSettings&) const = default;
};

struct LeaderElectionSettings {
    bool enabled = true;
    std::string lease_name = "stoker-operator";
    Duration lease_duration = std::chrono::seconds{15};
    Duration renew_deadline = std::chrono::seconds{10};
    Duration retry_period = std::chrono::seconds{2};

    bool operator==(const LeaderElectionSettings&) const = default;
};

struct OperatorConfig {
    SidecarSettings sidecar;
    ControlSettings control;
    LeaderElectionSettings leader_election;
    std::string http_listen = "[::]:8080";  // /metrics, /healthz, /readyz
    std::uint32_t workers = 4;              // objects that are worked on at once

    bool operator==(const OperatorConfig&) const = default;
};

// docs/reference/operator-config.md. kInvalidArgument: every mistake with its path, one a line.
Result<OperatorConfig> parse_operator_config(std::string_view text);

// The settings in force, for the log and --check-config: YAML that parses to an equal value.
std::string to_yaml(const OperatorConfig& config);

}  // namespace stoker::control
