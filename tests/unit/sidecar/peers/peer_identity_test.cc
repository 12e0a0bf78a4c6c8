#include "sidecar/peers/peer_identity.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "sidecar/peers/openssl.h"
#include "tests/unit/sidecar/peers/peer_credentials.h"

namespace stoker::sidecar {
namespace {

using test::peer_uri;

bool refused(const std::vector<std::string_view>& uris) {
    const auto identity = identity_of_uris(uris);
    return !identity && identity.error().code == ErrorCode::kForbidden;
}

TEST(PeerIdentity, HasTheNamespaceAndAllDatasets) {
    const PeerIdentity expected{"team-a", {"0f-1", "X_2.y"}};
    EXPECT_EQ(
        identity_of_uris(
            {"stoker://namespace/team-a/dataset/0f-1", "stoker://namespace/team-a/dataset/X_2.y"})
            .value(),
        expected);
}

TEST(PeerIdentity, SecondNamespaceIsRefused) {
    EXPECT_TRUE(refused({peer_uri("a", "1"), peer_uri("b", "2")}));
    EXPECT_TRUE(refused({peer_uri("a", "1"), peer_uri("a", "2"), peer_uri("", "3")}));
}

TEST(PeerIdentity, OtherFormsAreRefused) {
    for (const std::string_view uri :
         {"",
          "stoker://namespace/a",
          "stoker://namespace/a/dataset/",
          "stoker://namespace//dataset/u",
          "stoker://namespace/a/dataset/u/",
          "stoker://namespace/a/dataset/u/dataset/v",
          "stoker://namespace/a/b/dataset/u",
          "stoker://namespace/A/dataset/u",
          "stoker://namespace/a/dataset/u?x",
          "stoker://namespace/a/dataset/u%2fv",
          "stoker://namespace/a/datasets/u",
          "Stoker://namespace/a/dataset/u",
          " stoker://namespace/a/dataset/u",
          "https://namespace/a/dataset/u"}) {
        EXPECT_TRUE(refused({uri})) << uri;
        EXPECT_TRUE(refused({"stoker://namespace/a/dataset/good", uri})) << uri;
    }
    EXPECT_TRUE(refused({std::string_view{"stoker://namespace/a/dataset/u\0v", 32}}));
}

TEST(PeerIdentity, NamesOfDatasetsAndNamespacesAreBounded) {
    EXPECT_FALSE(refused({peer_uri(std::string(63, 'a'), std::string(64, 'u'))}));
    EXPECT_TRUE(refused({peer_uri(std::string(64, 'a'), "u")}));
    EXPECT_TRUE(refused({peer_uri("a", std::string(65, 'u'))}));
}

TEST(PeerIdentity, AtMost64DatasetsAndNoDuplicate) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i <= kPeerDatasetsMax; ++i) {
        texts.push_back(peer_uri("a", std::to_string(i)));
    }
    std::vector<std::string_view> uris{texts.begin(), texts.end()};
    EXPECT_TRUE(refused(uris));
    uris.pop_back();
    EXPECT_EQ(identity_of_uris(uris).value().dataset_uids.size(), kPeerDatasetsMax);
    uris.back() = uris.front();
    EXPECT_TRUE(refused(uris));
    EXPECT_TRUE(refused({}));
}

TEST(PeerIdentity, ReadsACertificateOfTheOperator) {
    const test::PeerAuthority authority;
    const auto read = [](const std::string& pem) {
        const BioPtr bio = bio_of(pem);
        const CertificatePtr certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
        return identity_of(*certificate);
    };
    const PeerIdentity expected{"team-a", {"u1", "u2"}};
    EXPECT_EQ(
        read(authority.credentials({peer_uri("team-a", "u1"), peer_uri("team-a", "u2")}).chain)
            .value(),
        expected);
    const control::KeyPair server =
        control::issue_leaf(authority.authority, {"stoker-control"}, {}, test::wall_now()).value();
    EXPECT_EQ(read(server.certificate).error().code, ErrorCode::kForbidden) << "a host's name";
    EXPECT_EQ(read(authority.credentials({}).trust).error().code, ErrorCode::kForbidden)
        << "no name";
}

}  // namespace
}  // namespace stoker::sidecar
