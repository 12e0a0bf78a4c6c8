#include "operator/config/operator_config.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::seconds;

// A configuration as charts/stoker renders it.
constexpr std::string_view kFull = R"(
sidecar:
  image: "stoker-sidecar:0.1.0"
  imagePullPolicy: IfNotPresent
  windowBytes: 128Mi
  metricsReaders: ["10.244.0.0/16","fd00::/8"]
  proxy:
    HTTPS_PROXY: http://proxy:3128
    NO_PROXY: .svc,10.0.0.0/8
  resources:
    limits:
      memory: 1Gi
    requests:
      cpu: 100m
      memory: 256Mi
  s3Port: 9800
  s3Resources:
    limits:
      memory: 512Mi
control:
  listen: "[::]:9443"
  address: "stoker-control.stoker-system.svc:9443"
  certificateDirectory: /etc/stoker/tls
  grantSeconds: 90
node:
  serviceAccount: cache-node
http:
  metrics: ""
  probes: "[::]:8081"
  debug: "[::]:8443"
watchNamespaces: [ml, "vision"]
leaderElection:
  enabled: true
  leaseName: stoker-operator
)";

TEST(OperatorConfig, ParsesTheChartsOutput) {
    const auto config = parse_operator_config(kFull);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->sidecar.image, "stoker-sidecar:0.1.0");
    EXPECT_EQ(config->sidecar.window_bytes, mib(128));
    EXPECT_EQ(
        config->sidecar.metrics_readers, (std::vector<std::string>{"10.244.0.0/16", "fd00::/8"}));
    EXPECT_EQ(
        config->sidecar.proxy,
        (TextMap{{"HTTPS_PROXY", "http://proxy:3128"}, {"NO_PROXY", ".svc,10.0.0.0/8"}}));
    EXPECT_EQ(config->sidecar.resources.requests, (TextMap{{"cpu", "100m"}, {"memory", "256Mi"}}));
    EXPECT_EQ(config->sidecar.s3_port, 9800U);
    EXPECT_EQ(config->sidecar.s3_resources.limits, (TextMap{{"memory", "512Mi"}}));
    EXPECT_EQ(config->control.address, "stoker-control.stoker-system.svc:9443");
    EXPECT_EQ(config->control.grant_seconds, 90U);
    EXPECT_EQ(config->node.service_account, "cache-node");
    EXPECT_EQ(config->http, (HttpSettings{"", "[::]:8081", "[::]:8443"}));
    EXPECT_EQ(config->leader_election.lease, seconds{15});
    EXPECT_EQ(config->watch_namespaces, (std::vector<std::string>{"ml", "vision"}));
}

TEST(OperatorConfig, YamlRoundTrips) {
    const auto config = parse_operator_config(kFull);
    ASSERT_TRUE(config);
    const auto again = parse_operator_config(to_yaml(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *config);
}

TEST(OperatorConfig, ReportsEveryMistake) {
    const auto refused = parse_operator_config(R"(
sidecar:
  imagePullPolicy: Sometimes
  windowBytes: 12
  metricsReaders: [lan]
  proxy: {https_proxy: "http://proxy:3128"}
  resources: {limits: {memory: lots}}
  s3Port: 65536
control:
  listen: 9443
  address: "::1:9443"
  grantSeconds: 5
  caRenewal: 24h
http: {probes: "", debug: 8443}
leaderElection: {leaseDuration: 5s}
htpp: {listen: "[::]:8080"}
workers: 0
watchNamespaces: [a, a]
)");
    ASSERT_FALSE(refused);
    EXPECT_EQ(
        refused.error().message,
        "sidecar.resources.limits.memory: \"lots\" is not a quantity\n"
        "sidecar.image: is required\n"
        "sidecar.metricsReaders: \"lan\" is not a range of addresses, such as 10.0.0.0/8\n"
        "sidecar.proxy.https_proxy: must be one of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY\n"
        "sidecar.imagePullPolicy: must be Always, IfNotPresent or Never\n"
        "sidecar.s3Port: must be 1 to 65535\n"
        "sidecar.windowBytes: must be a number of bytes, at least 1Mi\n"
        "control.listen: \"9443\" must be host:port, such as [::]:8080\n"
        "control.address: \"::1:9443\" must be host:port, such as [::]:8080\n"
        "control.grantSeconds: must be 10 to 3600\n"
        "control.caLifetime: must be longer than caRenewal, and caRenewal at least caOverlap "
        "plus leafLifetime\n"
        "http.debug: \"8443\" must be host:port, such as [::]:8080\n"
        "http.probes: is required\n"
        "leaderElection.leaseDuration: must be longer than renewDeadline, and renewDeadline "
        "longer than 1.2 times retryPeriod\n"
        "watchNamespaces: must be different names\n"
        "workers: must be 1 to 64\n"
        "htpp: unknown key; known here: control, http, leaderElection, node, sidecar, "
        "watchNamespaces, "
        "webhook, workers");
}

TEST(OperatorConfig, WebhookIsOffUnlessItListens) {
    const std::string rest = "sidecar: {image: s}\ncontrol: {address: \"control:9443\"}\nwebhook: ";
    EXPECT_EQ(parse_operator_config(rest + "{}").value().webhook.listen, "");
    const auto refused = parse_operator_config(rest + "{listen: \"[::]:9444\"}");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "webhook.hostName: is required with listen");
    const auto full =
        parse_operator_config(rest + "{listen: \"[::]:9444\", hostName: hook, leafLifetime: 1h}");
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->webhook.leaf_lifetime, std::chrono::hours{1});
    EXPECT_EQ(full->webhook.ca_secret_name, "stoker-webhook-ca");
}

TEST(OperatorConfig, EmptyFileLacksTwoSections) {
    EXPECT_EQ(
        parse_operator_config("").error().message, "sidecar: is required\ncontrol: is required");
}

}  // namespace
}  // namespace stoker::control
