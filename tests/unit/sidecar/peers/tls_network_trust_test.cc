#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "sidecar/peers/tls_network.h"
#include "tests/unit/sidecar/peers/peers_world.h"
#include "tests/unit/sidecar/peers/raw_peer.h"

namespace stoker::sidecar {
namespace {

using test::peer_uri;
using test::PeerAuthority;
using test::PeerNode;
using test::RawPeer;
using test::RecordedPeer;

struct TlsNetworkTrustTest : test::PeersTest {
    const PeerAuthority stranger{};
    PeerNode server{loop};
    PeerNode client{loop};
    const std::string address = server.listen();

    TlsNetworkTrustTest() { server.network->set_credentials(ours()); }

    // How a connection with these client credentials ends; "open" if it does not end.
    std::string verdict(const PeerCredentials& credentials) {
        client.network->set_credentials(credentials);
        const auto peer = client.connect(address);
        const std::size_t before = server.guests.size();
        EXPECT_TRUE(until([&] {
            return peer->end || (server.guests.size() > before && server.guests.back()->identity &&
                                 peer->identity);
        }));
        return peer->end ? peer->end_code() : "open";
    }

    // Waits, because the server counts a refusal only after it has told the client.
    bool has_refused(std::uint64_t count) {
        return until([&] { return server.network->counts().refused == count; });
    }

    // True: the server closes the connection and never shows it to the sidecar.
    bool is_refused(const RawPeer::Options& options) {
        RawPeer raw{address};
        const bool refused = !raw.shake_hands(options) || raw.is_closed_by_peer();
        loop.step({});
        return refused && server.guests.empty();
    }
};

TEST_F(TlsNetworkTrustTest, EachSideSeesTheIdentityOfTheOther) {
    server.network->set_credentials(
        authority.credentials({peer_uri("team", "u1"), peer_uri("team", "u2")}));
    client.network->set_credentials(authority.credentials({peer_uri("other-team", "u3")}));
    const auto peer = client.connect(address);
    ASSERT_TRUE(until([&] { return peer->identity && !server.guests.empty(); }));
    EXPECT_EQ(*peer->identity, (PeerIdentity{"team", {"u1", "u2"}}));
    ASSERT_TRUE(until([&] { return server.guests[0]->identity.has_value(); }));
    EXPECT_EQ(*server.guests[0]->identity, (PeerIdentity{"other-team", {"u3"}}));
}

TEST_F(TlsNetworkTrustTest, ServerRefusesALeafOfAnotherAuthority) {
    PeerCredentials forged = stranger.credentials({});
    forged.trust = ours().trust;
    EXPECT_EQ(verdict(forged), "forbidden");
    EXPECT_TRUE(server.guests.empty());
    EXPECT_TRUE(has_refused(1));
}

TEST_F(TlsNetworkTrustTest, ClientRefusesALeafOfAnotherAuthority) {
    PeerCredentials credentials = ours();
    credentials.trust = stranger.credentials({}).trust;
    EXPECT_EQ(verdict(credentials), "forbidden");
    EXPECT_TRUE(server.guests.empty());
}

TEST_F(TlsNetworkTrustTest, ExpiredLeafIsRefused) {
    EXPECT_EQ(
        verdict(authority.credentials({}, test::wall_now() - std::chrono::hours{25})), "forbidden");
    EXPECT_TRUE(server.guests.empty());
    server.network->set_credentials(
        authority.credentials({}, test::wall_now() - std::chrono::hours{25}));
    EXPECT_EQ(verdict(ours()), "forbidden");
}

TEST_F(TlsNetworkTrustTest, LeafOfTheNextDayIsRefused) {
    EXPECT_EQ(
        verdict(authority.credentials({}, test::wall_now() + std::chrono::hours{25})), "forbidden");
}

TEST_F(TlsNetworkTrustTest, RefusesNamesThatAreNotPeersOfOneNamespace) {
    EXPECT_EQ(verdict(authority.credentials({"spiffe://cluster/ns/team"})), "forbidden");
    EXPECT_EQ(
        verdict(authority.credentials({peer_uri("a", "1"), peer_uri("b", "2")})), "forbidden");
    EXPECT_TRUE(server.guests.empty());
    EXPECT_TRUE(has_refused(2));
}

TEST_F(TlsNetworkTrustTest, CertificateOfTheOperatorsServerIsRefused) {
    const control::KeyPair pair =
        control::issue_leaf(authority.authority, {"stoker-control"}, {}, test::wall_now()).value();
    EXPECT_EQ(verdict({pair.certificate, pair.key, ours().trust}), "forbidden");
    EXPECT_TRUE(server.guests.empty());
}

TEST_F(TlsNetworkTrustTest, ClientWithoutCertificateIsRefused) {
    EXPECT_TRUE(is_refused({}));
    EXPECT_TRUE(has_refused(1));
}

TEST_F(TlsNetworkTrustTest, OtherProtocolsAreRefused) {
    EXPECT_TRUE(is_refused({.credentials = ours(), .protocol = "h2"}));
    EXPECT_TRUE(is_refused({.credentials = ours(), .protocol = ""}));
    EXPECT_TRUE(is_refused({.credentials = ours(), .version_max = TLS1_2_VERSION}));
    RawPeer raw{address};
    EXPECT_TRUE(raw.shake_hands({.credentials = ours()}));
    EXPECT_TRUE(until([&] { return !server.guests.empty(); }));
}

TEST_F(TlsNetworkTrustTest, NewCredentialsHoldForNewConnections) {
    client.network->set_credentials(ours());
    const auto before = client.connect(address);
    ASSERT_TRUE(until([&] { return before->identity && !server.guests.empty(); }));

    server.network->set_credentials(stranger.credentials({}));
    EXPECT_EQ(verdict(ours()), "forbidden");
    EXPECT_EQ(verdict(stranger.credentials({})), "open");

    before->channel->send(test::frame_of(1, 10, 1));
    EXPECT_TRUE(until([&] { return server.guests[0]->frames.size() == 1; })) << "still open";
}

TEST_F(TlsNetworkTrustTest, PeersOfBothAuthoritiesMeetDuringARotation) {
    const control::AuthorityTerms terms;
    const WallTime now = test::wall_now();
    const auto advance = [&](const std::optional<control::Authority>& from, WallTime when) {
        return control::advance_authority(from, "stoker", terms, when).value();
    };
    const WallTime start = now - terms.ca_lifetime + terms.ca_renewal - terms.overlap;
    const control::Authority first = advance(std::nullopt, start);
    const control::Authority overlapping = advance(first, now - terms.overlap);
    const control::Authority promoted = advance(overlapping, now);
    ASSERT_FALSE(promoted.previous.empty());
    server.network->set_credentials(PeerAuthority{first}.credentials({}));
    EXPECT_EQ(verdict(PeerAuthority{promoted}.credentials({})), "open");
    server.network->set_credentials(PeerAuthority{promoted}.credentials({}));
    EXPECT_EQ(verdict(PeerAuthority{first}.credentials({})), "open");
}

TEST_F(TlsNetworkTrustTest, NothingOpensBeforeTheFirstCredentials) {
    PeerNode fresh{loop};
    const std::string there = fresh.listen();
    const auto out = fresh.connect(address);
    ASSERT_TRUE(until([&] { return out->end.has_value(); }));
    EXPECT_EQ(out->end_code(), "unavailable");

    client.network->set_credentials(ours());
    const auto in = client.connect(there);
    ASSERT_TRUE(until([&] { return in->end.has_value(); }));
    EXPECT_EQ(in->end_code(), "unavailable");
    EXPECT_TRUE(fresh.guests.empty());

    fresh.network->set_credentials(ours());
    const auto later = client.connect(there);
    EXPECT_TRUE(until([&] { return later->identity.has_value(); }));
}

TEST_F(TlsNetworkTrustTest, CredentialsThatCannotBeParsedLeaveTheOldOnes) {
    PeerCredentials mixed = ours();
    mixed.key = ours().key;
    PeerCredentials empty = ours();
    empty.trust.clear();
    for (const PeerCredentials& bad : {PeerCredentials{"x", "y", "z"}, mixed, empty}) {
        server.network->set_credentials(bad);
        EXPECT_EQ(verdict(ours()), "open");
    }
}

}  // namespace
}  // namespace stoker::sidecar
