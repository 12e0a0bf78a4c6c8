#include "operator/sidecars/local_authenticator.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include "tests/support/manual_clock.h"
#include "tests/support/token_issuer.h"

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using stoker::testing::base64url;
using stoker::testing::from_base64url;
using stoker::testing::ManualClock;
using stoker::testing::TokenIssuer;
using stoker::testing::TokenKeyType;
using stoker::testing::TokenPod;

const TokenPod kPod{"ml", "mnist-a1-0-x", "uid-1", "node-1"};
const PodIdentity kIdentity{"ml", "default", "mnist-a1-0-x", "node-1"};

// Counts the tokens that are passed on to it; answers each with kUnavailable.
class CountingFallback final : public Authenticator {
public:
    void authenticate(std::string /*token*/, Done done) override {
        ++asked;
        done(fail(ErrorCode::kUnavailable, "passed on"));
    }

    int asked = 0;
};

// Creating a key takes long, so all tests share one.
const TokenIssuer& shared_issuer() {
    static const TokenIssuer issuer;
    return issuer;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
}

struct LocalAuthenticatorTest : ::testing::Test {
    LocalAuthenticatorTest() {
        pages["/.well-known/openid-configuration"] = TokenIssuer::configuration();
        pages["/openid/v1/jwks"] = issuer.key_set();
        pods[{"ml", "mnist-a1-0-x"}] = "uid-1";
        authenticator.refresh();
    }

    [[nodiscard]] std::int64_t now() const {
        return std::chrono::duration_cast<seconds>(clock.wall_now().time_since_epoch()).count();
    }

    [[nodiscard]] std::string good_claims() const { return TokenIssuer::claims(kPod, now()); }

    // nullopt: the token was passed on to the fallback.
    std::optional<Result<PodIdentity>> check(const std::string& token) {
        std::optional<Result<PodIdentity>> heard;
        const int before = fallback.asked;
        authenticator.authenticate(
            token, [&](Result<PodIdentity> result) { heard = std::move(result); });
        EXPECT_TRUE(heard);
        return fallback.asked > before ? std::nullopt : heard;
    }

    void expect_accepted(const std::string& token) {
        const auto result = check(token);
        ASSERT_TRUE(result) << "passed on";
        ASSERT_TRUE(*result) << result->error().message;
        EXPECT_EQ(**result, kIdentity);
    }

    void expect_refused(const std::string& token) {
        const auto result = check(token);
        ASSERT_TRUE(result) << "passed on";
        ASSERT_FALSE(*result);
        EXPECT_EQ(result->error().code, ErrorCode::kForbidden);
    }

    void expect_passed_on(const std::string& token) { EXPECT_FALSE(check(token)); }

    ManualClock clock;
    const TokenIssuer& issuer = shared_issuer();
    std::map<std::string, std::string> pages;
    std::map<ObjectKey, std::string> pods;
    std::vector<std::string> read;
    CountingFallback fallback;
    LocalAuthenticator authenticator{
        {"stoker.dev"},
        [this](const ObjectKey& pod) {
            const auto found = pods.find(pod);
            return found == pods.end() ? std::nullopt : std::optional(found->second);
        },
        [this](const std::string& path) -> Result<std::string> {
            read.push_back(path);
            const auto found = pages.find(path);
            return found == pages.end() ? fail(ErrorCode::kForbidden, "not allowed")
                                        : Result<std::string>(found->second);
        },
        fallback,
        clock};
};

TEST_F(LocalAuthenticatorTest, AcceptsATokenOfALivingPod) {
    expect_accepted(issuer.make(kPod, now()));
    EXPECT_EQ(authenticator.counts().accepted_locally, 1U);
}

TEST_F(LocalAuthenticatorTest, AcceptsEs256) {
    const TokenIssuer other("ec-1", TokenKeyType::kP256);
    pages["/openid/v1/jwks"] = "{\"keys\":[" + issuer.key() + "," + other.key() + "]}";
    authenticator.refresh();
    expect_accepted(other.make(kPod, now()));
    expect_accepted(issuer.make(kPod, now()));
}

TEST_F(LocalAuthenticatorTest, AcceptsAnAudienceThatIsATextOrOneOfSeveral) {
    expect_accepted(issuer.sign(
        issuer.header(), replaced(good_claims(), R"(["stoker.dev"])", R"("stoker.dev")")));
    expect_accepted(issuer.sign(
        issuer.header(), replaced(good_claims(), R"(["stoker.dev"])", R"(["a","stoker.dev"])")));
}

TEST_F(LocalAuthenticatorTest, RefusesEveryAlteredByteOfTheClaims) {
    const std::string token = issuer.make(kPod, now());
    const std::size_t first = token.find('.');
    const std::size_t second = token.find('.', first + 1);
    for (std::size_t at = first + 1; at < second; ++at) {
        std::string altered = token;
        altered[at] = altered[at] == 'A' ? 'B' : 'A';
        const auto result = check(altered);
        EXPECT_FALSE(result && *result) << at;
    }
}

TEST_F(LocalAuthenticatorTest, RefusesClaimsOfAnotherPodUnderAnOldSignature) {
    const std::string token = issuer.make(kPod, now());
    const std::string other = TokenIssuer::claims({"kube-system", "x", "uid-9", "node-9"}, now());
    const std::size_t first = token.find('.');
    expect_refused(token.substr(0, first + 1) + base64url(other) + token.substr(token.rfind('.')));
}

TEST_F(LocalAuthenticatorTest, RefusesASignatureOfAnotherKeyWithOurKeysId) {
    expect_refused(TokenIssuer(issuer.key_id()).make(kPod, now()));
}

TEST_F(LocalAuthenticatorTest, RefusesSignaturesOfZerosAndOfWrongLengths) {
    const std::string token = issuer.make(kPod, now());
    const std::string text = token.substr(0, token.rfind('.') + 1);
    expect_refused(text + base64url(std::string(256, '\0')));
    expect_refused(text + base64url("x"));
    const std::string signature = from_base64url(token.substr(token.rfind('.') + 1));
    expect_refused(text + base64url(signature.substr(0, signature.size() - 1)));
    expect_refused(text + base64url(signature + "x"));
}

TEST_F(LocalAuthenticatorTest, RefusesEs256SignaturesOfZerosAndOfWrongLengths) {
    const TokenIssuer other("ec-1", TokenKeyType::kP256);
    pages["/openid/v1/jwks"] = other.key_set();
    authenticator.refresh();
    const std::string token = other.make(kPod, now());
    const std::string text = token.substr(0, token.rfind('.') + 1);
    for (const std::size_t size : {63U, 64U, 65U, 128U}) {
        expect_refused(text + base64url(std::string(size, '\0')));
    }
}

// The authenticator implements neither "none" nor HMAC (here with the public key as the secret) nor
// any other algorithm of this list.
TEST_F(LocalAuthenticatorTest, NeverAcceptsAnotherAlgorithm) {
    for (const char* name :
         {"none", "None", "NONE", "HS256", "HS512", "RS384", "PS256", "rs256", ""}) {
        const std::string header = fmt::format(R"({{"alg":"{}","kid":"key-1"}})", name);
        const std::string text = base64url(header) + "." + base64url(good_claims()) + ".";
        std::string mac(32, '\0');
        const std::string secret = issuer.pem();
        unsigned size = 0;
        HMAC(
            EVP_sha256(),
            secret.data(),
            static_cast<int>(secret.size()),
            reinterpret_cast<const unsigned char*>(text.data()),
            text.size() - 1,
            reinterpret_cast<unsigned char*>(mac.data()),
            &size);
        expect_passed_on(text + base64url(mac));
        expect_passed_on(issuer.sign(header, good_claims()));
    }
    expect_passed_on(issuer.sign(R"({"kid":"key-1"})", good_claims()));
}

TEST_F(LocalAuthenticatorTest, RefusesAnAlgorithmThatIsNotTheKeys) {
    expect_refused(issuer.sign(R"({"alg":"ES256","kid":"key-1"})", good_claims()));
}

TEST_F(LocalAuthenticatorTest, IgnoresKeysAndAddressesInTheHeader) {
    const TokenIssuer attacker("evil");
    for (const std::string& field :
         {"\"jwk\":" + attacker.key(),
          std::string(R"("jku":"https://evil/keys")"),
          std::string(R"("x5u":"https://evil/cert")"),
          std::string(R"("x5c":["MIIB"])")}) {
        expect_passed_on(attacker.sign(
            fmt::format(R"({{"alg":"RS256","kid":"evil",{}}})", field), good_claims()));
        expect_refused(attacker.sign(
            fmt::format(R"({{"alg":"RS256","kid":"key-1",{}}})", field), good_claims()));
    }
    EXPECT_THAT(read, ::testing::SizeIs(2));
}

TEST_F(LocalAuthenticatorTest, LeavesTokensWithUnknownOrMissingKeyIdsToTheApiServer) {
    expect_passed_on(TokenIssuer("key-2").make(kPod, now()));
    expect_passed_on(issuer.sign(R"({"alg":"RS256"})", good_claims()));
    expect_passed_on(issuer.sign(R"({"alg":"RS256","kid":7})", good_claims()));
    expect_passed_on(issuer.sign(R"({"alg":"RS256","kid":"../key-1"})", good_claims()));
}

TEST_F(LocalAuthenticatorTest, LeavesATokenToTheApiServerIfTwoKeysHaveItsKeyId) {
    const TokenIssuer second("key-1");
    pages["/openid/v1/jwks"] = "{\"keys\":[" + issuer.key() + "," + second.key() + "]}";
    authenticator.refresh();
    expect_passed_on(issuer.make(kPod, now()));
    expect_passed_on(second.make(kPod, now()));
}

TEST_F(LocalAuthenticatorTest, LeavesTokensWithCriticalExtensionsToTheApiServer) {
    expect_passed_on(
        issuer.sign(R"({"alg":"RS256","kid":"key-1","crit":["b64"],"b64":false})", good_claims()));
}

TEST_F(LocalAuthenticatorTest, LeavesAnExpiredTokenToTheApiServer) {
    const std::string token = issuer.make(kPod, now());
    clock.advance(minutes{59});
    authenticator.refresh();
    expect_accepted(token);
    clock.advance(minutes{1});
    authenticator.refresh();
    expect_passed_on(token);
}

TEST_F(LocalAuthenticatorTest, LeavesATokenThatIsNotYetValidToTheApiServer) {
    expect_passed_on(issuer.make(kPod, now() + 30));
}

TEST_F(LocalAuthenticatorTest, RefusesAnotherAudience) {
    for (const char* audience :
         {R"(["https://kubernetes.default.svc"])",
          R"(["stoker.dev.evil"])",
          R"([])",
          R"("STOKER.DEV")"}) {
        expect_refused(
            issuer.sign(issuer.header(), replaced(good_claims(), R"(["stoker.dev"])", audience)));
    }
}

TEST_F(LocalAuthenticatorTest, LeavesTokensOfAnotherIssuerToTheApiServer) {
    expect_passed_on(issuer.sign(
        issuer.header(), replaced(good_claims(), TokenIssuer::kIssuer, "https://other")));
}

TEST_F(LocalAuthenticatorTest, LeavesTokensWithMissingOrMistypedClaimsToTheApiServer) {
    for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{
             {"\"exp\":", "\"x\":"},
             {"\"exp\":", "\"exp\":1e300,\"x\":"},
             {"\"exp\":", "\"exp\":-1,\"x\":"},
             {"\"exp\":", "\"exp\":\"9999999999\",\"x\":"},
             {"\"exp\":", "\"exp\":9223372036854775807,\"x\":"},
             {"\"nbf\":", "\"x\":"},
             {"\"iss\":", "\"x\":"},
             {"\"aud\":", "\"x\":"},
             {R"(["stoker.dev"])", R"([7,"stoker.dev"])"},
             {"\"sub\":", "\"x\":"},
             {"\"pod\":", "\"secret\":"},
             {"\"kubernetes.io\":", "\"x\":"},
             {"system:serviceaccount:ml:default", "system:serviceaccount:ml:admin"},
             {"system:serviceaccount:ml:default", "system:serviceaccount:other:default"}}) {
        expect_passed_on(issuer.sign(issuer.header(), replaced(good_claims(), what, by)));
    }
    expect_passed_on(issuer.sign(issuer.header(), "[]"));
    expect_passed_on(issuer.sign(issuer.header(), "not json"));
}

TEST_F(LocalAuthenticatorTest, LeavesTokensOfAPodThatIsGoneOrReplacedToTheApiServer) {
    const std::string token = issuer.make(kPod, now());
    pods[{"ml", "mnist-a1-0-x"}] = "uid-2";
    expect_passed_on(token);
    pods.clear();
    expect_passed_on(token);
}

TEST_F(LocalAuthenticatorTest, LeavesTextThatIsNoTokenToTheApiServer) {
    for (const char* text : {"", "a", "a.b", "a.b.c", "a.b.c.d", "\xff.b.c", "e30.e30.e30"}) {
        expect_passed_on(text);
    }
}

TEST_F(LocalAuthenticatorTest, IgnoresTheKeyAddressInTheDiscoveryPage) {
    EXPECT_THAT(
        read, ::testing::ElementsAre("/.well-known/openid-configuration", "/openid/v1/jwks"));
}

TEST_F(LocalAuthenticatorTest, ForgetsAKeyThatIsNoLongerPublished) {
    const TokenIssuer next("key-2");
    pages["/openid/v1/jwks"] = next.key_set();
    authenticator.refresh();
    expect_passed_on(issuer.make(kPod, now()));
    expect_accepted(next.make(kPod, now()));
}

TEST_F(LocalAuthenticatorTest, PassesEverythingOnWithoutKeys) {
    pages.clear();
    LocalAuthenticator without(
        {"stoker.dev"},
        [](const ObjectKey&) { return std::optional<std::string>("uid-1"); },
        [](const std::string&) { return fail(ErrorCode::kForbidden, "not allowed"); },
        fallback,
        clock);
    without.refresh();
    without.authenticate(issuer.make(kPod, now()), [](const Result<PodIdentity>&) {});
    EXPECT_EQ(fallback.asked, 1);
    EXPECT_EQ(without.counts().reviewed, 1U);
}

TEST_F(LocalAuthenticatorTest, DropsKeysThatCannotBeReadAgainForFiveMinutes) {
    pages.clear();
    clock.advance(minutes{4});
    authenticator.refresh();
    expect_accepted(issuer.make(kPod, now()));
    clock.advance(minutes{1});
    authenticator.refresh();
    expect_passed_on(issuer.make(kPod, now()));
}

TEST(IssuerKeys, LeavesOutKeysThatCannotBeUsed) {
    const TokenIssuer good("good");
    const TokenIssuer small("small", TokenKeyType::kRsa, 1024);
    const std::string encryption =
        replaced(TokenIssuer("enc").key(), R"("use":"sig")", R"("use":"enc")");
    const std::string other_algorithm =
        replaced(TokenIssuer("ps").key(), R"("alg":"RS256")", R"("alg":"PS256")");
    const std::string symmetric = R"({"kty":"oct","kid":"oct","k":"c2VjcmV0"})";
    const std::string nameless = replaced(TokenIssuer("gone").key(), R"("kid":"gone",)", "");
    std::string off_curve = TokenIssuer("off", TokenKeyType::kP256).key();
    off_curve = replaced(off_curve, R"("x":")", R"("y":"AAAA","x":")");
    const auto keys = parse_issuer_keys(
        TokenIssuer::configuration(),
        fmt::format(
            R"({{"keys":[{},{},{},{},{},{},{},7,null,{{}}]}})",
            small.key(),
            encryption,
            other_algorithm,
            symmetric,
            nameless,
            off_curve,
            good.key()));
    ASSERT_TRUE(keys) << keys.error().message;
    ASSERT_EQ(keys->keys.size(), 1U);
    EXPECT_EQ(keys->keys.front().id(), "good");
}

TEST(IssuerKeys, RefusesPagesWithoutIssuerOrKeys) {
    const std::string set = TokenIssuer().key_set();
    EXPECT_FALSE(parse_issuer_keys("{}", set));
    EXPECT_FALSE(parse_issuer_keys("", set));
    EXPECT_FALSE(parse_issuer_keys(TokenIssuer::configuration(), "{}"));
    EXPECT_FALSE(parse_issuer_keys(TokenIssuer::configuration(), R"({"keys":[]})"));
    EXPECT_FALSE(parse_issuer_keys(TokenIssuer::configuration(), R"({"keys":"x"})"));
}

}  // namespace
}  // namespace stoker::control
