#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/kube/access.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"
#include "tests/support/api_server/server.h"

// The API server behaviour that we rely on, tested against the fake one and, with
// STOKER_REAL_API=<URL of `kubectl proxy`>, against a real one, so that the fake stays faithful.
namespace stoker::control {

inline Json json(const std::string& text) {
    auto parsed = Json::parse(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : Json();
}

inline std::vector<std::string> servers() {
    std::vector<std::string> all = {"fake"};
    if (std::getenv("STOKER_REAL_API") != nullptr) {
        all.emplace_back("real");
    }
    return all;
}

class ApiContract : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        AccessConfig config;
        if (GetParam() == "real") {
            config.server = std::getenv("STOKER_REAL_API");
        } else {
            fake = std::make_unique<test::ApiServer>();
            config.server = fake->url();
        }
        access = std::make_unique<AccessSource>(config, read_file, clock);
        transport = std::make_unique<RestTransport>(
            *access, RestTransportOptions{"stoker-contract", mib(64), 8}, clock);
        client = make_client("contract");
        other = make_client("somebody-else");
        const auto unique = clock.wall_now().time_since_epoch().count();
        ns = fmt::format("contract-{}", unique);
        node = fmt::format("node-{}", unique);
        const auto made = client->create(
            kinds::kNamespaces,
            "",
            json(fmt::format(
                R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", ns)));
        ASSERT_TRUE(made) << made.error().message;
    }

    void TearDown() override {
        if (client) {
            EXPECT_TRUE(client->remove(kinds::kNodes, {"", node}, {}));
            EXPECT_TRUE(client->remove(kinds::kNamespaces, {"", ns}, {}));
        }
    }

    std::unique_ptr<RestClient> make_client(const std::string& manager) {
        RestClientOptions options;
        options.field_manager = manager;
        return std::make_unique<RestClient>(*transport, options, clock, std::stop_token{});
    }

    Json config_map(
        const std::string& name, const std::string& data, const std::string& more = "") {
        return json(fmt::format(
            R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"{}}},"data":{}}})",
            name,
            more,
            data));
    }

    Object make_map(
        const std::string& name, const std::string& data = "{}", const std::string& more = "") {
        auto made = client->create(kinds::kConfigMaps, ns, config_map(name, data, more));
        EXPECT_TRUE(made) << made.error().message;
        return made ? *made : Object{};
    }

    std::string data_of(const std::string& name) {
        const auto got = client->get(kinds::kConfigMaps, {ns, name});
        if (!got) {
            return got.error().message;
        }
        const auto* data = find_at(got->raw.value(), {"data"});
        return data == nullptr ? "none" : data->serialize();
    }

    ApiResponse call(const ApiRequest& request) {
        auto answer = transport->call(request, std::chrono::seconds{30}, {});
        EXPECT_TRUE(answer) << answer.error().message;
        return answer ? *answer : ApiResponse{};
    }

    SystemClock clock;
    std::unique_ptr<test::ApiServer> fake;
    std::unique_ptr<AccessSource> access;
    std::unique_ptr<RestTransport> transport;
    std::unique_ptr<RestClient> client;
    std::unique_ptr<RestClient> other;
    std::string ns;
    std::string node;
};

}  // namespace stoker::control
