#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "common/http/http_date.h"
#include "common/http/local_address.h"
#include "tests/support/http_script_server.h"
#include "tests/unit/common/http/make_client.h"

namespace stoker::http {
namespace {

using test::answering;
using test::HttpScriptServer;
using test::ScriptConnection;
using test::ScriptRequest;
using testing::HasSubstr;
using namespace std::chrono_literals;

HttpRequest following(const std::string& url) {
    HttpRequest request = get(url);
    request.redirects_max = 2;
    request.headers = {{"Authorization", "Bearer t"}};
    return request;
}

// Answers "/N" with a redirect to "/N-1", and "/0" with its Authorization header.
HttpScriptServer::Script countdown() {
    return answering([](const ScriptRequest& request, ScriptConnection& to) {
        const int left = std::stoi(request.target.substr(1));
        const auto given = request.headers.find("authorization");
        if (left == 0) {
            to.reply(200, given == request.headers.end() ? "none" : given->second);
        } else {
            to.reply(302, "moved", "Location: /" + std::to_string(left - 1) + "\r\n");
        }
    });
}

TEST(Redirects, AreResponsesUnlessAskedFor) {
    HttpScriptServer server{countdown()};
    const auto response = make_client()->call(get(server.url("/1")));
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 302);
    EXPECT_EQ(response->body, "moved");
}

TEST(Redirects, AreFollowedToTheirLimit) {
    HttpScriptServer server{countdown()};
    const auto response = make_client()->call(following(server.url("/2")));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "Bearer t") << "the same host gets the credentials";
    const auto endless = make_client()->call(following(server.url("/3")));
    ASSERT_FALSE(endless.has_value());
    EXPECT_EQ(endless.error().code, ErrorCode::kInvalidArgument) << endless.error().message;
}

TEST(Redirects, SendNoCredentialsToAnotherHost) {
    HttpScriptServer other{countdown()};
    HttpScriptServer server{answering([&](const ScriptRequest&, ScriptConnection& to) {
        to.reply(307, "", "Location: " + other.url("/0") + "\r\n");
    })};
    const auto response = make_client()->call(following(server.url("/")));
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "none");
}

// Asks a remote host for /a through a proxy; the proxy answers with a redirect to `target`, and
// with "ok" to other requests. Hosts in `except` are reached directly.
Result<HttpResponse> redirect_to(const std::string& target, const std::string& except) {
    HttpScriptServer proxy{answering([&](const ScriptRequest& request, ScriptConnection& to) {
        const bool is_first = request.target.ends_with("/a");
        const std::string location = is_first ? "Location: " + target + "\r\n" : "";
        to.reply(is_first ? 302 : 200, "ok", location + "Connection: close\r\n");
        to.hang_up();
    })};
    ClientOptions options;
    options.proxies.http = proxy.url("");
    options.proxies.except = except;
    return make_client(std::move(options))->call(following("http://data.example.com/a"));
}

TEST(Redirects, DoNotLeadToMetadataServices) {
    const auto response = redirect_to("http://169.254.169.254/latest", "169.254.169.254");
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kForbidden) << response.error().message;
    EXPECT_THAT(response.error().message, HasSubstr("redirects to an address of this machine"));
}

TEST(Redirects, DoNotLeadToLoopbackBesideAProxyThere) {
    HttpScriptServer inside{countdown()};
    const auto response = redirect_to(inside.url("/0"), "localhost,127.0.0.1,.svc");
    ASSERT_FALSE(response.has_value()) << response->body;
    EXPECT_EQ(response.error().code, ErrorCode::kForbidden) << response.error().message;
    EXPECT_EQ(inside.connection_count(), 0);
}

TEST(Redirects, GoThroughAProxyOnLoopbackAgain) {
    const auto response = redirect_to("http://other.example.com/b", "");
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "ok");
}

AddressKind kind_of(const char* text) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        return address_kind(reinterpret_cast<const sockaddr&>(v6));
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text, &v4.sin_addr), 1) << text;
    return address_kind(reinterpret_cast<const sockaddr&>(v4));
}

TEST(LocalAddress, KnowsThisMachineAndMetadataServices) {
    for (const char* loopback :
         {"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"}) {
        EXPECT_EQ(kind_of(loopback), AddressKind::kLoopback) << loopback;
    }
    for (const char* local :
         {"169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.1.1"}) {
        EXPECT_EQ(kind_of(local), AddressKind::kLinkLocal) << local;
    }
    for (const char* remote : {"10.0.0.1", "169.253.1.1", "8.8.8.8", "fd00::1", "2001:db8::1"}) {
        EXPECT_EQ(kind_of(remote), AddressKind::kRemote) << remote;
    }
}

TEST(LocalAddress, KnowsUrlsOfThisMachine) {
    for (const char* url :
         {"http://localhost/a",
          "http://127.0.0.1:80/",
          "https://[::1]:8443",
          "http://169.254.0.1"}) {
        EXPECT_TRUE(names_local_host(url)) << url;
    }
    for (const char* url :
         {"http://localhost.example.com/", "https://10.0.0.1/", "http://[fd00::1]/a"}) {
        EXPECT_FALSE(names_local_host(url)) << url;
    }
}

TEST(HttpDate, ReadsAndWritesTheOneForm) {
    const WallTime time{784111777s};
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), time);
    EXPECT_EQ(format_http_date(time + 900ms), "Sun, 06 Nov 1994 08:49:37 GMT");
    for (const char* other :
         {"Sunday, 06-Nov-94 08:49:37 GMT",
          "Sun, 06 Nov 1994 08:49:37 GMT ",
          "Mon, 01 Jan 2263 00:00:00 GMT",
          "Sat, 01 Jan 1600 00:00:00 GMT",
          "",
          "0"}) {
        EXPECT_EQ(parse_http_date(other), std::nullopt) << other;
    }
}

}  // namespace
}  // namespace stoker::http
