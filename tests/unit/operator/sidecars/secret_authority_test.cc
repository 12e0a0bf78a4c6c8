#include "operator/sidecars/secret_authority.h"

#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/read_file.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/rest_transport.h"
#include "operator/sidecars/certificate_keeper.h"
#include "tests/support/api_server/server.h"
#include "tests/support/manual_clock.h"
#include "tests/unit/operator/certificates/requests.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ObjectKey kSecret{"stoker-system", "stoker-control-ca"};
const AuthorityTerms kTerms;

AccessConfig access_to(const std::string& url) {
    AccessConfig config;
    config.server = url;
    return config;
}

// The certificate authority of one operator replica.
struct Replica {
    Replica(const std::string& url, const Clock& wall)
        : access(access_to(url), read_file, clock),
          transport(access, RestTransportOptions{"test", mib(1), 2}, clock),
          client(transport, {"test"}, clock, {}),
          authority(client, {kSecret, {"stoker-control"}, kTerms}, wall) {}

    ServedCertificate load() { return authority.load().value(); }

    SystemClock clock;
    AccessSource access;
    RestTransport transport;
    RestClient client;
    SecretAuthority authority;
};

struct SecretAuthorityTest : ::testing::Test {
    std::unique_ptr<Replica> replica() { return std::make_unique<Replica>(server.url(), clock); }

    std::string stored() {
        const auto object = server.with_model(
            [](test::ApiServerModel& model) { return model.find(kinds::kSecrets, kSecret); });
        return object ? object->text() : "";
    }

    test::ApiServer server;
    testing::ManualClock clock;
};

TEST_F(SecretAuthorityTest, CreatesTheCaOnceForAllReplicas) {
    const auto first = replica();
    const ServedCertificate made = first->load();
    EXPECT_EQ(first->load(), made);
    EXPECT_EQ(replica()->load().trust, made.trust);
    EXPECT_EQ(server.count("POST", "/secrets"), 1U);
    EXPECT_EQ(server.count("PUT", "/secrets"), 0U);
}

TEST_F(SecretAuthorityTest, ReplicasThatStartTogetherAgree) {
    std::vector<std::unique_ptr<Replica>> replicas;
    std::vector<ServedCertificate> served(8);
    std::vector<std::jthread> threads;
    for (ServedCertificate& out : served) {
        replicas.push_back(replica());
        threads.emplace_back([&out, self = replicas.back().get()] { out = self->load(); });
    }
    threads.clear();
    std::set<std::string> trusted;
    for (const ServedCertificate& one : served) {
        trusted.insert(one.trust);
    }
    EXPECT_EQ(trusted.size(), 1U);
}

TEST_F(SecretAuthorityTest, ReadsNoOtherSecret) {
    replica()->load();
    clock.advance(kTerms.ca_lifetime - kTerms.ca_renewal);
    replica()->load();
    const std::string all = "/api/v1/namespaces/stoker-system/secrets";
    for (const test::SeenRequest& request : server.seen()) {
        const std::string path = request.target.substr(0, request.target.find('?'));
        const bool own = path == all + "/" + kSecret.name;
        const bool create = request.method == "POST" && path == all;
        EXPECT_TRUE(own || create) << request.method << " " << request.target;
    }
}

TEST_F(SecretAuthorityTest, SecretContainsNoLeaf) {
    const ServedCertificate served = replica()->load();
    EXPECT_THAT(stored(), HasSubstr(base64_encode(served.trust)));
    EXPECT_THAT(stored(), Not(HasSubstr(base64_encode(served.leaf.key))));
}

TEST_F(SecretAuthorityTest, RewritesADeletedSecret) {
    const auto running = replica();
    const ServedCertificate made = running->load();
    server.erase(kinds::kSecrets, kSecret);
    EXPECT_EQ(running->load(), made);
    EXPECT_EQ(replica()->load().trust, made.trust);
}

TEST_F(SecretAuthorityTest, FillsAnEmptySecret) {
    server.create(
        kinds::kSecrets,
        kSecret.ns,
        R"({"metadata":{"name":"stoker-control-ca"},"type":"Opaque"})");
    EXPECT_THAT(replica()->load().trust, StartsWith("-----BEGIN CERTIFICATE-----"));
}

TEST_F(SecretAuthorityTest, LeavesAForeignSecretUnchanged) {
    server.create(
        kinds::kSecrets,
        kSecret.ns,
        R"({"metadata":{"name":"stoker-control-ca"},"data":{"password":"aHVudGVyMg=="}})");
    const std::string before = stored();
    const auto refused = replica()->authority.load();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(refused.error().message, HasSubstr("stoker-system/stoker-control-ca"));
    EXPECT_EQ(stored(), before);
}

TEST_F(SecretAuthorityTest, RenewsTheLeafWithAThirdOfItsLifeLeft) {
    const auto running = replica();
    const ServedCertificate made = running->load();
    clock.advance(hours{15});
    EXPECT_EQ(running->load(), made);
    clock.advance(hours{1});
    const ServedCertificate renewed = running->load();
    EXPECT_NE(renewed.leaf, made.leaf);
    EXPECT_EQ(renewed.trust, made.trust);
}

TEST_F(SecretAuthorityTest, RotationByOneReplicaReachesTheOthers) {
    const auto one = replica();
    const auto other = replica();
    const ServedCertificate made = one->load();
    other->load();
    clock.advance(kTerms.ca_lifetime - kTerms.ca_renewal);
    const ServedCertificate overlapping = one->load();
    EXPECT_THAT(overlapping.trust, StartsWith(made.trust));
    EXPECT_GT(overlapping.trust.size(), made.trust.size());
    EXPECT_EQ(other->load().trust, overlapping.trust);
    EXPECT_EQ(server.count("PUT", "/secrets"), 1U);
}

TEST_F(SecretAuthorityTest, KeepsTheOldCertificateWithoutTheApiServer) {
    const auto running = replica();
    CertificateKeeper keeper([&] { return running->authority.load(); }, clock, {});
    int changes = 0;
    keeper.add_listener([&](const ServedCertificate&) { ++changes; });
    EXPECT_EQ(keeper.current(), nullptr);
    ASSERT_TRUE(keeper.look());
    const ServedCertificatePtr made = keeper.current();
    test::Fault refused;
    refused.status = 403;
    refused.times = -1;
    server.add_fault(refused);
    clock.advance(hours{20});
    EXPECT_FALSE(keeper.look());
    EXPECT_EQ(keeper.current(), made);
    server.clear_faults();
    ASSERT_TRUE(keeper.look());
    EXPECT_NE(keeper.current(), made);
    EXPECT_EQ(changes, 2);
}

TEST_F(SecretAuthorityTest, SignsPeerRequests) {
    const auto ca = replica();
    const std::string request = test::make_request({}).certificate;
    EXPECT_EQ(
        ca->authority.issue_peer(request, {"stoker://x"}).error().code, ErrorCode::kUnavailable);
    const ServedCertificate served = ca->load();
    const PeerCertificate issued = ca->authority.issue_peer(request, {"stoker://x"}).value();
    EXPECT_EQ(issued.trust, served.trust);
    EXPECT_EQ(test::uris_of(issued.chain), std::vector<std::string>{"stoker://x"});
    EXPECT_EQ(issued.renew_seconds, 16U * 3600) << "two thirds of a day";
    EXPECT_FALSE(ca->authority.issue_peer("no request", {"stoker://x"}).has_value());
}

}  // namespace
}  // namespace stoker::control
