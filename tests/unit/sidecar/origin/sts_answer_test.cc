#include "sidecar/origin/sts_answer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kAnswer =
    R"(<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>system:serviceaccount:ml:default</SubjectFromWebIdentityToken>
    <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/stoker</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>ASIA1</AccessKeyId>
      <SecretAccessKey>a/b+c&amp;d</SecretAccessKey>
      <SessionToken>token==</SessionToken>
      <Expiration>2026-01-31T13:00:00Z</Expiration>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>)";

TEST(StsAnswer, ParsesCredentialsThatExpire) {
    const auto found = parse_sts_credentials(kAnswer);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->credentials, (Credentials{"ASIA1", "a/b+c&d", "token=="}));
    EXPECT_EQ(found->expires, WallTime{1769864400s});
}

TEST(StsAnswer, RefusesAnIncompleteAnswer) {
    const std::string whole{kAnswer};
    for (const char* name : {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}) {
        std::string other = whole;
        for (auto at = other.find(name); at != std::string::npos; at = other.find(name, at + 1)) {
            other[at] = 'X';
        }
        EXPECT_EQ(parse_sts_credentials(other).error().code, ErrorCode::kUnavailable) << name;
    }
    EXPECT_FALSE(parse_sts_credentials("").has_value());
    EXPECT_FALSE(parse_sts_credentials("<html>login</html>").has_value());
}

TEST(StsAnswer, RefusesEveryPrefixOfAnAnswer) {
    for (std::size_t length = 0; length < kAnswer.size(); ++length) {
        EXPECT_FALSE(parse_sts_credentials(kAnswer.substr(0, length)).has_value()) << length;
    }
}

TEST(StsAnswer, SurvivesRandomDamage) {
    Prng prng{test::seed()};
    for (int round = 0; round < 2000; ++round) {
        std::string text{kAnswer};
        for (int i = 0; i < 5; ++i) {
            text.at(prng() % text.size()) = static_cast<char>(prng());
        }
        static_cast<void>(parse_sts_credentials(text));
        static_cast<void>(sts_refusal(400, text));
    }
}

TEST(StsAnswer, ARefusalQuotesTheService) {
    const auto error = [](int status, const char* code) {
        return sts_refusal(
            status,
            std::string{"<ErrorResponse><Error><Type>Sender</Type><Code>"} + code +
                "</Code><Message>no such role</Message></Error></ErrorResponse>");
    };
    EXPECT_EQ(
        error(403, "AccessDenied"),
        (Error{ErrorCode::kForbidden, "403 AccessDenied: no such role"}));
    EXPECT_EQ(error(400, "InvalidIdentityToken").code, ErrorCode::kForbidden);
    EXPECT_EQ(error(400, "IDPCommunicationError").code, ErrorCode::kUnavailable);
    EXPECT_EQ(error(429, "Throttling").code, ErrorCode::kUnavailable);
    EXPECT_EQ(sts_refusal(503, "").code, ErrorCode::kUnavailable);
    EXPECT_THAT(sts_refusal(404, "").message, HasSubstr("404 without an explanation"));
    EXPECT_THAT(sts_refusal(404, "not found").message, HasSubstr("404 'not found'"));
}

TEST(IsoTime, IsUtc) {
    EXPECT_EQ(parse_iso_time("2026-01-31T12:00:00Z"), WallTime{1769860800s});
    EXPECT_EQ(parse_iso_time("2026-01-31T12:00:00.123456Z"), WallTime{1769860800s});
    EXPECT_EQ(parse_iso_time("2026-01-31T12:00:00+00:00"), WallTime{1769860800s});
    EXPECT_EQ(parse_iso_time("1013-02-03T00:00:00Z"), WallTime{}) << "no overflow";
    EXPECT_EQ(parse_iso_time("9999-12-31T23:59:59Z"), WallTime{7258118400s}) << "no overflow";
    for (const char* wrong :
         {"", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00+02:00", "tomorrow"}) {
        EXPECT_EQ(parse_iso_time(wrong), std::nullopt) << wrong;
    }
}

}  // namespace
}  // namespace stoker::sidecar
