#include "sidecar/peers/peer_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sidecar/peers/peer_credentials.h"

namespace stoker::sidecar {
namespace {

TEST(PeerKey, OperatorCertifiesIt) {
    const PeerKey key = make_peer_key().value();
    EXPECT_THAT(key.key, ::testing::StartsWith("-----BEGIN PRIVATE KEY-----"));
    EXPECT_THAT(key.request, ::testing::StartsWith("-----BEGIN CERTIFICATE REQUEST-----"));
    const test::PeerAuthority operators;
    const auto chain = control::issue_peer_leaf(
        operators.authority, key.request, {test::peer_uri("a", "u")}, {}, test::wall_now());
    ASSERT_TRUE(chain);
    EXPECT_TRUE(control::check_pair({*chain, key.key}));
}

TEST(PeerKey, EachIsNew) {
    EXPECT_NE(make_peer_key().value().key, make_peer_key().value().key);
}

}  // namespace
}  // namespace stoker::sidecar
