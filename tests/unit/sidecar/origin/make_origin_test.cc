#include "sidecar/origin/make_origin.h"

#include <fstream>
#include <map>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/http_server.h"
#include "tests/support/list_objects.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

using ::testing::HasSubstr;
using Values = std::map<std::string, std::string>;

const SystemClock kClock;

Environment environment(Values values) {
    return [values = std::move(values)](const char* name) -> const char* {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

class ChooseCredentials : public ::testing::Test {
protected:
    ChooseCredentials() {
        write("AWS_ACCESS_KEY_ID", "of the directory");
        write("AWS_SECRET_ACCESS_KEY", "s");
        write("file", R"({"AccessKeyId": "of the file", "SecretAccessKey": "s"})");
        write("token", "jwt");
    }

    void write(const std::string& name, const std::string& text) {
        std::ofstream{folder_.path() + "/" + name} << text;
    }

    std::string chosen() {
        const auto source = choose_credentials(options_, environment(values_), kClock);
        if (!source) {
            return source.error().message;
        }
        const auto got = (*source)->get();
        return !got ? got.error().message : *got ? (*got)->access_key_id : "nobody's";
    }

    test::TempFolder folder_;
    OriginOptions options_;
    Values values_;
};

TEST_F(ChooseCredentials, TheMostExplicitSourceWins) {
    EXPECT_EQ(chosen(), "nobody's");
    values_["AWS_ROLE_ARN"] = "role";
    values_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_.path() + "/token";
    values_["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:1/";
    EXPECT_THAT(chosen(), HasSubstr("http://127.0.0.1:1/ for role role"));
    values_["AWS_ACCESS_KEY_ID"] = "of the environment";
    values_["AWS_SECRET_ACCESS_KEY"] = "s";
    EXPECT_EQ(chosen(), "of the environment");
    options_.credentials_file = folder_.path() + "/file";
    EXPECT_EQ(chosen(), "of the file");
    options_.credentials_directory = folder_.path();
    EXPECT_THAT(chosen(), HasSubstr("not both"));
    options_.credentials_file.clear();
    EXPECT_EQ(chosen(), "of the directory");
}

TEST_F(ChooseCredentials, HalfAPairOfVariablesIsAnError) {
    values_["AWS_ACCESS_KEY_ID"] = "id";
    values_["AWS_ROLE_ARN"] = "role";
    values_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_.path() + "/token";
    EXPECT_THAT(chosen(), HasSubstr("without AWS_SECRET_ACCESS_KEY"));
}

std::string text_of(const std::string& uri, const OriginOptions& options, Values values) {
    const auto origin = make_origin(uri, options, environment(std::move(values)), kClock, 1);
    if (!origin) {
        return origin.error().message;
    }
    const auto listed = test::list_objects(**origin);
    return listed ? "listed" : listed.error().message;
}

TEST(MakeOrigin, UsesTheEnvironmentsProxy) {
    const auto proxy =
        http::HttpServer::start({.address = "127.0.0.1"}, [](const http::ServerRequest& request) {
            return http::ServerResponse{403, "text/plain", "proxied " + request.target, {}};
        }).value();
    const std::string address = fmt::format("http://127.0.0.1:{}", proxy->port());
    OriginOptions options;
    options.endpoint = "http://s3.example";
    options.retry.attempts_max = 1;
    EXPECT_THAT(
        text_of("s3://b", options, {{"HTTP_PROXY", address}}),
        HasSubstr("proxied http://s3.example/b/?"));
    options.endpoint = address;
    EXPECT_THAT(
        text_of(
            "s3://b", options, {{"HTTP_PROXY", "http://127.0.0.1:1"}, {"NO_PROXY", "127.0.0.1"}}),
        HasSubstr("proxied /b/?"));
}

TEST(MakeOrigin, TheEnvironmentsCaFileIsForHttpsOnly) {
    OriginOptions options;
    options.retry.attempts_max = 1;
    options.endpoint = "https://127.0.0.1:1";
    for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
        EXPECT_THAT(
            text_of("s3://b", options, {{name, "/none.pem"}}),
            HasSubstr("CA certificates: cannot read /none.pem"));
    }
    EXPECT_THAT(
        text_of("s3://b", options, {{"AWS_CA_BUNDLE", "/a"}, {"SSL_CERT_FILE", "/b"}}),
        HasSubstr("cannot read /a"));
    options.ca_file = "/mine.pem";
    EXPECT_THAT(
        text_of("s3://b", options, {{"AWS_CA_BUNDLE", "/none.pem"}}), HasSubstr("/mine.pem"));
    options.ca_file.clear();
    options.endpoint = "http://127.0.0.1:1";
    EXPECT_THAT(
        text_of("s3://b", options, {{"AWS_CA_BUNDLE", "/none.pem"}}),
        HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace stoker::sidecar
