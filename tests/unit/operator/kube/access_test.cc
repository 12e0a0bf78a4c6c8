#include "operator/kube/access.h"

#include <map>

#include <gtest/gtest.h>

#include "operator/kube/kubeconfig.h"
#include "tests/support/manual_clock.h"

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Files in memory and a plugin that counts.
class AccessTest : public ::testing::Test {
protected:
    AccessSource source(AccessConfig config) {
        AccessSource::Doors doors;
        doors.read_file = [this](const std::string& path) -> Result<std::string> {
            ++reads[path];
            const auto found = files.find(path);
            if (found == files.end()) {
                return fail(ErrorCode::kNotFound, "cannot read " + path);
            }
            return found->second;
        };
        doors.run_exec = [this](const ExecConfig&, const AccessConfig&) -> Result<ExecCredential> {
            ++runs;
            return plugin;
        };
        return AccessSource(std::move(config), std::move(doors), clock);
    }

    static AccessConfig with_token_file() {
        AccessConfig config;
        config.server = "https://10.0.0.1:443";
        config.token_file = "/sa/token";
        return config;
    }

    testing::ManualClock clock;
    std::map<std::string, std::string> files;
    std::map<std::string, int> reads;
    ExecCredential plugin;
    int runs = 0;
};

TEST_F(AccessTest, ReadsTheTokenAnewEveryMinute) {
    files["/sa/token"] = "one\n";
    auto access = source(with_token_file());
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    files["/sa/token"] = "two\n";
    clock.advance(seconds{59});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    EXPECT_EQ(reads["/sa/token"], 1);
    clock.advance(seconds{1});
    EXPECT_EQ(access.get()->authorization, "Bearer two");
}

TEST_F(AccessTest, KeepsTheOldTokenWhileTheFileIsGoneOrEmpty) {
    files["/sa/token"] = "one";
    auto access = source(with_token_file());
    EXPECT_TRUE(access.get());
    files["/sa/token"] = "\n";
    clock.advance(minutes{1});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    files.clear();
    clock.advance(minutes{1});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
}

TEST_F(AccessTest, SaysWhatIsMissingWhenItNeverHadAToken) {
    auto access = source(with_token_file());
    EXPECT_EQ(access.get().error().message, "cannot read /sa/token");
    files["/sa/token"] = "";
    EXPECT_EQ(access.get().error().message, "/sa/token is empty");
}

TEST_F(AccessTest, ReadsAtOnceAfterARefusalAndSaysWhetherThatHelped) {
    files["/sa/token"] = "one";
    auto access = source(with_token_file());
    ASSERT_TRUE(access.get());
    EXPECT_FALSE(access.reject("Bearer one"));
    files["/sa/token"] = "two";
    EXPECT_TRUE(access.reject("Bearer one"));
    EXPECT_EQ(access.get()->authorization, "Bearer two");
}

TEST_F(AccessTest, ReadsCertificatesEveryFiveMinutesAndKeepsGoodOnes) {
    AccessConfig config;
    config.ca_file = "/ca";
    config.cert_file = "/cert";
    config.key_file = "/key";
    files = {{"/ca", "CA1"}, {"/cert", "C1"}, {"/key", "K1"}};
    auto access = source(config);
    EXPECT_EQ(access.get()->ca_pem, "CA1");
    files = {{"/ca", ""}, {"/cert", "C2"}, {"/key", "K2"}};
    clock.advance(minutes{5} - seconds{1});
    EXPECT_EQ(access.get()->cert_pem, "C1");
    clock.advance(seconds{1});
    EXPECT_EQ(access.get()->cert_pem, "C2");
    EXPECT_EQ(access.get()->key_pem, "K2");
    EXPECT_EQ(access.get()->ca_pem, "CA1") << "an empty bundle is no bundle";
}

TEST_F(AccessTest, RunsThePluginOnceUntilItsCredentialEnds) {
    AccessConfig config;
    config.exec = ExecConfig{};
    plugin.token = "t1";
    plugin.expires = clock.wall_now() + minutes{10};
    auto access = source(config);
    EXPECT_EQ(access.get()->authorization, "Bearer t1");
    clock.advance(minutes{9});
    ASSERT_TRUE(access.get());
    EXPECT_EQ(runs, 1);
    clock.advance(seconds{51});
    ASSERT_TRUE(access.get());
    EXPECT_EQ(runs, 2) << "ten seconds before the end";
    plugin.token = "t2";
    plugin.expires = clock.wall_now() + minutes{60};
    EXPECT_TRUE(access.reject("Bearer t1"));
    EXPECT_EQ(access.get()->authorization, "Bearer t2");
    const int before = runs;
    EXPECT_TRUE(access.reject("Bearer t1")) << "somebody renewed it meanwhile";
    EXPECT_EQ(runs, before);
}

TEST_F(AccessTest, PrefersStaticCredentialsToThePlugin) {
    AccessConfig config;
    config.exec = ExecConfig{};
    config.token = "static";
    auto access = source(config);
    EXPECT_EQ(access.get()->authorization, "Bearer static");
    EXPECT_EQ(runs, 0);
}

TEST_F(AccessTest, PrefersTheTokenFileToTheTokenText) {
    AccessConfig config = with_token_file();
    config.token = "text";
    files["/sa/token"] = "file";
    EXPECT_EQ(source(config).get()->authorization, "Bearer file");
}

TEST(InClusterAccess, BracketsIpv6AndFailsOutsideOfAPod) {
    std::map<std::string, std::string> env = {
        {"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
    const auto get = [&](const char* name) { return env[name]; };
    const auto config = in_cluster_access(get, "/nowhere");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->server, "https://[fd00::1]:443");
    EXPECT_EQ(config->token_file, "/nowhere/token");
    EXPECT_EQ(config->ns, "default");
    env.clear();
    EXPECT_EQ(in_cluster_access(get).error().code, ErrorCode::kNotFound);
}

TEST(Base64, GoesThereAndBack) {
    EXPECT_EQ(base64_encode("Man"), "TWFu");
    EXPECT_EQ(base64_encode("Ma"), "TWE=");
    EXPECT_EQ(base64_encode("M"), "TQ==");
    std::string all;
    for (int length = 0; length < 300; ++length) {
        EXPECT_EQ(base64_decode(base64_encode(all)).value(), all);
        all += static_cast<char>(length * 7);
    }
    EXPECT_FALSE(base64_decode("not*base64"));
}

constexpr const char* kConfig = R"(
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: {server: "https://one:6443/", certificate-authority: pki/ca.crt}
- name: two
  cluster: {server: "http://two", certificate-authority-data: Q0E=}
users:
- name: admin
  user: {client-certificate-data: Q0VSVA==, client-key: /abs/key}
- name: robot
  user: {token: 12345, tokenFile: token, as: other, as-groups: [g1, yes]}
- name: plug
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get-token, args: [a, 1], env: [{name: X, value: "true"}], provideClusterInfo: true}
contexts:
- name: dev
  context: {cluster: one, user: admin, namespace: team}
- name: robot
  context: {cluster: two, user: robot}
- name: plug
  context: {cluster: two, user: plug}
- name: lost
  context: {cluster: three, user: admin}
)";

TEST(Kubeconfig, ResolvesTheCurrentContextWithPathsFromItsFolder) {
    const auto config = parse_kubeconfig({{"/home/x/.kube/config", kConfig}});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->server, "https://one:6443");
    EXPECT_EQ(config->ca_file, "/home/x/.kube/pki/ca.crt");
    EXPECT_EQ(config->cert_pem, "CERT");
    EXPECT_EQ(config->key_file, "/abs/key");
    EXPECT_EQ(config->ns, "team");
}

TEST(Kubeconfig, KeepsScalarsThatLookLikeNumbersAsTexts) {
    const auto config = parse_kubeconfig({{"/k", kConfig}}, "robot");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->token, "12345");
    EXPECT_EQ(config->impersonate_user, "other");
    EXPECT_EQ(config->impersonate_groups, (std::vector<std::string>{"g1", "yes"}));
    EXPECT_EQ(config->ca_pem, "CA");
    EXPECT_EQ(config->ns, "default");
}

TEST(Kubeconfig, ReadsExecPlugins) {
    const auto config = parse_kubeconfig({{"/home/k", kConfig}}, "plug");
    ASSERT_TRUE(config && config->exec);
    EXPECT_EQ(config->exec->command, "./get-token");
    EXPECT_EQ(config->exec->args, (std::vector<std::string>{"a", "1"}));
    EXPECT_EQ(config->exec->env.at("X"), "true");
    EXPECT_TRUE(config->exec->provide_cluster_info);
    EXPECT_EQ(config->exec->directory, "/home");
}

TEST(Kubeconfig, TheFirstFileThatNamesSomethingWins) {
    const char* first =
        R"({current-context: robot, clusters: [{name: two, cluster: {server: "https://first"}}]})";
    const auto config = parse_kubeconfig({{"/a", first}, {"/b", kConfig}});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->server, "https://first");
    EXPECT_EQ(config->token, "12345");
}

TEST(Kubeconfig, SaysWhatIsWrong) {
    struct Case {
        const char* text;
        const char* context;
        const char* want;
    };

    const Case cases[] = {
        {"{a: [", "", "/k: "},
        {"[]", "", "not a kubeconfig"},
        {kConfig, "nope", "no context \"nope\""},
        {kConfig, "lost", "no cluster \"three\""},
        {R"({current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "https://s", proxy-url: "http://p"}}]})",
         "",
         "proxy-url is not supported"},
        {R"({current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "s"}}]})",
         "",
         "no http(s) URL"},
        {R"({current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "https://s", certificate-authority-data: "***"}}]})",
         "",
         "not base64"},
    };
    for (const Case& c : cases) {
        const auto config = parse_kubeconfig({{"/k", c.text}}, c.context);
        ASSERT_FALSE(config) << c.want;
        EXPECT_NE(config.error().message.find(c.want), std::string::npos) << config.error().message;
    }
}

TEST(ExecPlugin, RunsAScriptAndReadsItsCredential) {
    ExecConfig exec;
    exec.api_version = "client.authentication.k8s.io/v1";
    exec.command = "sh";
    exec.args = {
        "-c",
        "echo complaint >&2; test -n \"$KUBERNETES_EXEC_INFO\" && test \"$EXTRA\" = x && echo "
        "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
        "\"status\":{\"token\":\"abc\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}}'"};
    exec.env["EXTRA"] = "x";
    const auto credential = run_exec_plugin(exec, {});
    ASSERT_TRUE(credential) << credential.error().message;
    EXPECT_EQ(credential->token, "abc");
    EXPECT_EQ(credential->expires, WallTime{seconds{1'767'225'600}});
}

TEST(ExecPlugin, RefusesFailuresGarbageAndTerminals) {
    ExecConfig exec;
    exec.api_version = "client.authentication.k8s.io/v1";
    exec.command = "sh";
    exec.args = {"-c", "exit 3"};
    EXPECT_EQ(run_exec_plugin(exec, {}).error().code, ErrorCode::kUnavailable);
    exec.args = {"-c", "echo garbage"};
    EXPECT_EQ(run_exec_plugin(exec, {}).error().code, ErrorCode::kInvalidArgument);
    exec.args = {
        "-c",
        "echo "
        "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"other/v9\",\"status\":{\"token\":\"x\"}}'"};
    EXPECT_EQ(run_exec_plugin(exec, {}).error().code, ErrorCode::kInvalidArgument);
    exec.command = "/no/such/program";
    EXPECT_EQ(run_exec_plugin(exec, {}).error().code, ErrorCode::kUnavailable);
    exec.interactive_mode = "Always";
    EXPECT_EQ(run_exec_plugin(exec, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::control
