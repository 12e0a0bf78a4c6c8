#include "operator/certificates/x509.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/certificates/requests.h"
#include "tests/unit/operator/certificates/verify.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using test::verify;

constexpr WallTime kNow{std::chrono::seconds{1'790'000'000}};
constexpr Validity kYear{kNow, kNow + hours{24 * 365}};
constexpr Validity kDay{kNow, kNow + hours{24}};
const std::vector<std::string> kNames{"stoker-control", "stoker-control.stoker-system.svc"};

TEST(X509, LeafVerifiesForEachNameWhileValid) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const KeyPair leaf = make_leaf(ca, kNames, kDay).value();
    EXPECT_EQ(verify(leaf.certificate, ca.certificate, kNames[0], kNow), "ok");
    EXPECT_EQ(verify(leaf.certificate, ca.certificate, kNames[1], kNow + hours{23}), "ok");
    EXPECT_EQ(
        verify(leaf.certificate, ca.certificate, "stoker-control.evil.svc", kNow),
        "hostname mismatch");
    EXPECT_EQ(
        verify(leaf.certificate, ca.certificate, kNames[0], kNow + hours{25}),
        "certificate has expired");
    EXPECT_EQ(
        verify(leaf.certificate, ca.certificate, kNames[0], kNow - hours{1}),
        "certificate is not yet valid");
}

TEST(X509, RejectsLeafOfAnotherCaWithTheSameName) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const KeyPair twin = make_ca("ca", kYear).value();
    const KeyPair leaf = make_leaf(twin, kNames, kDay).value();
    EXPECT_NE(verify(leaf.certificate, ca.certificate, kNames[0], kNow), "ok");
}

TEST(X509, LeafCannotSignOthers) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const KeyPair leaf = make_leaf(ca, kNames, kDay).value();
    const KeyPair forged = make_leaf(leaf, {"other"}, kDay).value();
    EXPECT_NE(verify(forged.certificate + leaf.certificate, ca.certificate, "other", kNow), "ok");
}

const std::vector<std::string> kUris{
    "stoker://namespace/a/dataset/1", "stoker://namespace/a/dataset/2"};

TEST(X509, PeerCertificateIsForTheRequestsKeyAndTheCallersUris) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const KeyPair asked = test::make_request({});
    const std::string leaf = certify_peer(ca, asked.certificate, kUris, kDay).value();
    EXPECT_TRUE(check_pair({leaf, asked.key}));
    EXPECT_EQ(test::uris_of(leaf), kUris);
    EXPECT_EQ(verify(leaf, ca.certificate, "", kNow), "ok");
    EXPECT_EQ(verify(leaf, ca.certificate, "", kNow, X509_PURPOSE_SSL_CLIENT), "ok");
    EXPECT_EQ(verify(leaf, ca.certificate, "", kNow + hours{25}), "certificate has expired");
}

TEST(X509, NothingButTheKeyIsTakenFromARequest) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const std::string leaf =
        certify_peer(
            ca,
            test::make_request({.common_name = "admin", .names = "DNS:admin,URI:stoker://x"})
                .certificate,
            {kUris[0]},
            kDay)
            .value();
    EXPECT_EQ(read_certificate(leaf).value().common_name, "stoker-peer");
    EXPECT_FALSE(read_certificate(leaf).value().is_ca);
    EXPECT_EQ(test::uris_of(leaf), std::vector<std::string>{kUris[0]});
    EXPECT_EQ(verify(leaf, ca.certificate, "admin", kNow), "hostname mismatch");
}

TEST(X509, BadRequestsAreRefused) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const auto verdict = [&](const std::string& request, const std::vector<std::string>& uris) {
        const auto leaf = certify_peer(ca, request, uris, kDay);
        return leaf ? "ok" : to_string(leaf.error().code);
    };
    const std::string good = test::make_request({}).certificate;
    EXPECT_EQ(verdict(good, kUris), "ok");
    EXPECT_EQ(
        verdict(test::make_request({.signs_itself = false}).certificate, kUris),
        "invalid_argument");
    EXPECT_EQ(
        verdict(test::make_request({.curve = "P-384"}).certificate, kUris), "invalid_argument");
    EXPECT_EQ(verdict(test::make_request({.curve = ""}).certificate, kUris), "invalid_argument")
        << "RSA";
    for (const std::string& text :
         {std::string{},
          std::string{"garbage"},
          ca.certificate,
          ca.key,
          good.substr(0, 200),
          std::string(1U << 20U, 'x')}) {
        EXPECT_EQ(verdict(text, kUris), "invalid_argument");
    }
}

TEST(X509, UrisCannotAddOtherNames) {
    const KeyPair ca = make_ca("ca", kYear).value();
    const std::string good = test::make_request({}).certificate;
    const auto refused = [&](const std::vector<std::string>& uris) {
        const auto leaf = certify_peer(ca, good, uris, kDay);
        return !leaf && leaf.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused({}));
    EXPECT_TRUE(refused({""}));
    EXPECT_TRUE(refused({kUris[0] + ",DNS:stoker-control"}));
    EXPECT_TRUE(refused({kUris[0] + "\n"}));
    EXPECT_TRUE(refused({kUris[0], "stoker://namespace/b/dataset/@section"}));
    EXPECT_FALSE(refused(std::vector<std::string>(kPeerUrisMax, kUris[0])));
    EXPECT_TRUE(refused(std::vector<std::string>(kPeerUrisMax + 1, kUris[0])));
}

TEST(X509, CrossSignedCaLinksOldTrustToTheNewKey) {
    const KeyPair old_ca = make_ca("old", kYear).value();
    const KeyPair new_ca = make_ca("new", kYear).value();
    const std::string bridge = cross_sign(new_ca.certificate, old_ca, kYear).value();
    const KeyPair leaf = make_leaf(new_ca, kNames, kDay).value();
    const std::string chain = leaf.certificate + bridge;
    EXPECT_EQ(verify(chain, old_ca.certificate, kNames[0], kNow), "ok");
    EXPECT_EQ(verify(chain, new_ca.certificate, kNames[0], kNow), "ok");
    EXPECT_EQ(verify(chain, old_ca.certificate + new_ca.certificate, kNames[0], kNow), "ok");
    EXPECT_NE(verify(leaf.certificate, old_ca.certificate, kNames[0], kNow), "ok");
}

TEST(X509, ReadsCertificateFields) {
    const KeyPair ca = make_ca("ca of tests", kYear).value();
    const CertificateFacts facts = read_certificate(ca.certificate).value();
    EXPECT_TRUE(facts.is_ca);
    EXPECT_EQ(facts.common_name, "ca of tests");
    EXPECT_EQ(facts.validity.not_before, kYear.not_before);
    EXPECT_EQ(facts.validity.not_after, kYear.not_after);
    EXPECT_FALSE(read_certificate(make_leaf(ca, kNames, kDay).value().certificate).value().is_ca);
}

TEST(X509, RejectsGarbageAndForeignKeys) {
    const KeyPair ca = make_ca("ca", kYear).value();
    EXPECT_TRUE(check_pair(ca));
    EXPECT_EQ(
        check_pair({ca.certificate, make_ca("ca", kYear).value().key}).error().code,
        ErrorCode::kCorruption);
    EXPECT_EQ(check_pair({ca.certificate, "garbage"}).error().code, ErrorCode::kCorruption);
    EXPECT_EQ(read_certificate("").error().code, ErrorCode::kCorruption);
    EXPECT_EQ(make_leaf({"", ""}, kNames, kDay).error().code, ErrorCode::kCorruption);
    EXPECT_EQ(make_leaf(ca, {}, kDay).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::control
