#include "common/http/proxy.h"

#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "common/http/http_server.h"

namespace stoker::http {
namespace {

std::function<const char*(const char*)> environment(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) -> const char* {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

TEST(Proxy, ReadsTheEnvironmentLowerCaseFirst) {
    EXPECT_EQ(proxies_from_environment(environment({})), ProxySettings{});
    EXPECT_EQ(
        proxies_from_environment(environment(
            {{"HTTP_PROXY", "http://upper"},
             {"http_proxy", "http://lower"},
             {"HTTPS_PROXY", "http://secure"},
             {"NO_PROXY", ".svc"}})),
        (ProxySettings{"http://lower", "http://secure", ".svc"}));
    EXPECT_EQ(
        proxies_from_environment(environment({{"ALL_PROXY", "http://all"}, {"https_proxy", ""}})),
        (ProxySettings{"http://all", "http://all", ""}));
}

TEST(Proxy, DependsOnTheScheme) {
    const ProxySettings settings{"a", "b", ""};
    EXPECT_EQ(settings.for_url("http://s3/https://"), "a");
    EXPECT_EQ(settings.for_url("https://s3/"), "b");
}

// A server that answers with the request's target: a proxy receives an absolute URL.
class ProxyRequests : public ::testing::Test {
protected:
    std::string target_of(const std::string& url, const std::string& except = "") {
        ClientOptions options;
        options.proxies.http = "http://127.0.0.1:" + std::to_string(server_->port());
        options.proxies.except = except;
        const auto client = make_curl_client(std::move(options), clock_).value();
        const auto response = client->call({.url = url});
        return response ? response->body : to_string(response.error().code).data();
    }

    SystemClock clock_;
    std::unique_ptr<HttpServer> server_ =
        HttpServer::start({.address = "127.0.0.1"}, [](const ServerRequest& request) {
            return ServerResponse{200, "text/plain", request.target, {}};
        }).value();
};

TEST_F(ProxyRequests, GoThroughTheProxy) {
    EXPECT_EQ(target_of("http://s3.example/b/k"), "http://s3.example/b/k");
}

TEST_F(ProxyRequests, ReachExceptedHostsDirectly) {
    const std::string own = "http://127.0.0.1:" + std::to_string(server_->port()) + "/b/k";
    EXPECT_EQ(target_of(own), own);
    EXPECT_EQ(target_of(own, "example,127.0.0.0/8"), "/b/k");
    EXPECT_EQ(target_of("http://s3.example/b/k", ".other"), "http://s3.example/b/k");
}

TEST_F(ProxyRequests, IgnoreTheVariableHttpProxyIfNoProxyIsConfigured) {
    ::setenv("http_proxy", "http://127.0.0.1:1", 1);
    const auto client = make_curl_client({}, clock_).value();
    const auto response =
        client->call({.url = "http://127.0.0.1:" + std::to_string(server_->port()) + "/x"});
    ::unsetenv("http_proxy");
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "/x");
}

}  // namespace
}  // namespace stoker::http
