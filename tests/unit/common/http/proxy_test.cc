#include "common/http/proxy.h"

#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "common/http/http_server.h"
#include "tests/support/http_certificate.h"
#include "tests/support/http_script_server.h"

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

// A TLS server that answers 404 with a header, behind a proxy.
class ConnectProxy : public ::testing::Test {
protected:
    // One request to the server through a proxy with this script.
    Result<HttpResponse> call_through(test::HttpScriptServer::Script script) {
        const test::HttpScriptServer proxy{std::move(script)};
        ClientOptions options;
        options.ca_pem = certificate_.cert_pem;
        options.proxies.https = proxy.url("");
        const auto client = make_curl_client(std::move(options), clock_).value();
        return client->call({.url = "https://localhost:" + std::to_string(server_->port()) + "/x"});
    }

    SystemClock clock_;
    test::Certificate certificate_ = test::make_certificate("localhost");
    std::unique_ptr<HttpServer> server_ =
        HttpServer::start(
            {.address = "127.0.0.1",
             .cert_pem = certificate_.cert_pem,
             .key_pem = certificate_.key_pem},
            [](const ServerRequest&) {
                return ServerResponse{404, "text/odd", "no such thing", {}};
            })
            .value();
};

TEST_F(ConnectProxy, PassesOnTheServersAnswerAndNotItsOwn) {
    std::string asked;
    const auto response = call_through([&](test::ScriptConnection& to) {
        const auto request = to.read_request();
        ASSERT_TRUE(request.has_value());
        asked = request->method + " " + request->target;
        to.send("HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n");
        to.tunnel_to(server_->port());
    });
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(asked, "CONNECT localhost:" + std::to_string(server_->port()));
    EXPECT_EQ(response->status, 404);
    EXPECT_EQ(response->body, "no such thing");
    EXPECT_EQ(find_header(response->headers, "X-Proxy"), nullptr);
    const std::string* type = find_header(response->headers, "Content-Type");
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(*type, "text/odd");
}

TEST_F(ConnectProxy, AskingForAPasswordIsAnError) {
    const auto response = call_through(test::answering([](const auto&, auto& to) {
        to.reply(407, "who are you", "Proxy-Authenticate: Basic\r\n");
    }));
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(response.error().message, testing::HasSubstr("407"));
}

}  // namespace
}  // namespace stoker::http
