#include "operator/certificates/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/certificates/requests.h"
#include "tests/unit/operator/certificates/verify.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr WallTime kStart{std::chrono::seconds{1'790'000'000}};
constexpr Duration kDay = hours{24};
const std::vector<std::string> kNames{"stoker-control.stoker-system.svc"};
const AuthorityTerms kTerms;

Authority authority_at(const std::optional<Authority>& before, WallTime now) {
    return advance_authority(before, "stoker", kTerms, now).value();
}

std::string verdict(const Authority& signer, const std::string& trusted, WallTime now) {
    const KeyPair leaf = issue_leaf(signer, kNames, kTerms, now).value();
    return test::verify(leaf.certificate, trusted, kNames[0], now);
}

struct AuthorityTest : ::testing::Test {
    const Authority first = authority_at(std::nullopt, kStart);
    const WallTime rotation = kStart + kTerms.ca_lifetime - kTerms.ca_renewal;
    const Authority overlapping = authority_at(first, rotation);
    const Authority promoted = authority_at(overlapping, rotation + kTerms.overlap);
};

TEST_F(AuthorityTest, NewCaSignsAtOnceAndStaysUnchanged) {
    EXPECT_EQ(verdict(first, trust_bundle(first), kStart), "ok");
    EXPECT_FALSE(first.next);
    EXPECT_EQ(authority_at(first, kStart + kDay * 700), first);
}

TEST_F(AuthorityTest, NextCaIsTrustedLongBeforeItSigns) {
    EXPECT_EQ(overlapping.signing, first.signing);
    ASSERT_TRUE(overlapping.next);
    EXPECT_THAT(trust_bundle(overlapping), HasSubstr(first.signing.certificate));
    EXPECT_THAT(trust_bundle(overlapping), HasSubstr(overlapping.next->certificate));
    EXPECT_EQ(authority_at(overlapping, rotation + kTerms.overlap - kDay), overlapping);
    EXPECT_EQ(promoted.signing, *overlapping.next);
    EXPECT_EQ(promoted.previous, first.signing.certificate);
    EXPECT_FALSE(promoted.next);
}

TEST_F(AuthorityTest, JobsOfAnyAgeTrustTheCurrentLeaf) {
    const WallTime then = rotation + kTerms.overlap;
    EXPECT_EQ(verdict(promoted, trust_bundle(first), then), "ok");
    EXPECT_EQ(verdict(promoted, trust_bundle(overlapping), then), "ok");
    EXPECT_EQ(verdict(promoted, trust_bundle(promoted), then), "ok");
    const WallTime last = kStart + kTerms.ca_lifetime - kDay;
    EXPECT_EQ(verdict(authority_at(promoted, last), trust_bundle(first), last), "ok");
}

TEST_F(AuthorityTest, DropsExpiredCertificates) {
    const WallTime after = kStart + kTerms.ca_lifetime;
    const Authority later = authority_at(promoted, after);
    EXPECT_EQ(later.signing, promoted.signing);
    EXPECT_TRUE(later.previous.empty());
    EXPECT_TRUE(later.bridge.empty());
    EXPECT_THAT(trust_bundle(later), Not(HasSubstr(first.signing.certificate)));
    EXPECT_EQ(verdict(later, trust_bundle(later), after), "ok");
}

TEST_F(AuthorityTest, AfterThePromotionOfANewCaTheOldKeyIsNotStored) {
    for (const auto& [name, text] : print_authority(promoted)) {
        EXPECT_THAT(text, Not(HasSubstr(first.signing.key))) << name;
    }
}

TEST_F(AuthorityTest, CreatesANewCaAfterYearsWithoutAnOperator) {
    const WallTime now = kStart + kTerms.ca_lifetime * 2;
    const Authority later = authority_at(first, now);
    EXPECT_NE(later.signing, first.signing);
    EXPECT_EQ(verdict(later, trust_bundle(later), now), "ok");
}

TEST_F(AuthorityTest, LoadsFromItsSecret) {
    for (const Authority& authority : {first, overlapping, promoted}) {
        EXPECT_EQ(parse_authority(print_authority(authority)).value(), authority);
    }
    EXPECT_EQ(parse_authority({}).value(), std::nullopt);
    EXPECT_EQ(print_authority(overlapping)["ca.crt"], trust_bundle(overlapping));
}

TEST_F(AuthorityTest, RejectsAForeignSecret) {
    const auto refused = [](SecretData data) {
        const auto parsed = parse_authority(data);
        return !parsed && parsed.error().code == ErrorCode::kCorruption;
    };
    EXPECT_TRUE(refused({{"password", "hunter2"}}));
    SecretData data = print_authority(overlapping);
    data["signing.key"] = data["next.key"];
    EXPECT_TRUE(refused(data));
    data = print_authority(overlapping);
    data.erase("next.key");
    EXPECT_TRUE(refused(data));
    data = print_authority(promoted);
    data["bridge.crt"] = "garbage";
    EXPECT_TRUE(refused(data));
    data = print_authority(first);
    const KeyPair leaf = issue_leaf(first, kNames, kTerms, kStart).value();
    data["signing.crt"] = leaf.certificate;
    data["signing.key"] = leaf.key;
    EXPECT_TRUE(refused(data));
}

TEST_F(AuthorityTest, LeafIsValidForADayAndRenewedWithAThirdLeft) {
    const KeyPair leaf = issue_leaf(first, kNames, kTerms, kStart).value();
    const Validity validity = read_certificate(leaf.certificate).value().validity;
    EXPECT_EQ(validity.not_after, kStart + kDay);
    EXPECT_EQ(validity.not_before, kStart - kBackdated);
    EXPECT_FALSE(is_due(validity, kStart + hours{15}));
    EXPECT_TRUE(is_due(validity, kStart + hours{16}));
    EXPECT_FALSE(is_due(validity, kStart - kBackdated));
    EXPECT_TRUE(is_due(validity, kStart - kBackdated - hours{1})) << "the clock was ahead";
}

TEST_F(AuthorityTest, PeersOfAnyAgeTrustAPeersLeaf) {
    const std::string request = test::make_request({}).certificate;
    const auto leaf_of = [&](const Authority& authority, WallTime now) {
        return issue_peer_leaf(authority, request, {"stoker://x"}, kTerms, now).value();
    };
    const WallTime then = rotation + kTerms.overlap;
    for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
        for (const Authority* older : {&first, &overlapping, &promoted}) {
            const std::string trusted = trust_bundle(*older);
            EXPECT_EQ(test::verify(leaf_of(promoted, then), trusted, "", then, purpose), "ok");
        }
    }
    const Validity validity = read_certificate(leaf_of(first, kStart)).value().validity;
    EXPECT_EQ(validity.not_after, kStart + kDay);
    EXPECT_EQ(validity.not_before, kStart - kBackdated);
    const WallTime last = kStart + kTerms.ca_lifetime - hours{5};
    EXPECT_EQ(
        read_certificate(leaf_of(first, last)).value().validity.not_after,
        kStart + kTerms.ca_lifetime);
}

TEST_F(AuthorityTest, LeafNeverOutlivesItsCa) {
    const WallTime now = kStart + kTerms.ca_lifetime - hours{5};
    const KeyPair leaf = issue_leaf(first, kNames, kTerms, now).value();
    EXPECT_EQ(
        read_certificate(leaf.certificate).value().validity.not_after, kStart + kTerms.ca_lifetime);
}

}  // namespace
}  // namespace stoker::control
