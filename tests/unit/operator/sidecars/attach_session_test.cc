#include "operator/sidecars/attach_session.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/sidecar_client.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

// Records what the session asks for.
class FakeStream final : public SidecarStream {
public:
    void read() override { ++reads; }

    void write(const v1::OperatorMessage& message) override { written.push_back(message); }

    void close(const Status& why) override { closed.push_back(why); }

    int reads = 0;
    std::vector<v1::OperatorMessage> written;
    std::vector<Status> closed;
};

struct AttachSessionTest : ::testing::Test {
    AttachSessionTest() { session->begin({"ml", "default", "a", "node-1"}, session); }

    static std::optional<v1::SidecarMessage> hello() {
        v1::SidecarMessage message;
        *message.mutable_hello() = testing::make_hello("ml", "a");
        return message;
    }

    static std::optional<v1::SidecarMessage> report(std::uint64_t sequence) {
        v1::SidecarMessage message;
        *message.mutable_report() = testing::make_report(sequence, 7);
        return message;
    }

    static Orders grant(std::uint64_t bytes) {
        return {{{"node-1", "d1", Bytes{bytes}, 60, 0, "Granted"}}, {}, {}};
    }

    testing::ManualClock clock;
    SidecarRegistry registry{{}, nullptr};
    SessionSettings settings{registry, clock, seconds{10}, 2};
    FakeStream stream;
    std::shared_ptr<AttachSession> session = std::make_shared<AttachSession>(settings, stream);
};

TEST_F(AttachSessionTest, ConfirmsAHelloAndReadsOn) {
    session->on_message(hello());
    EXPECT_EQ(stream.written.size(), 1U);
    EXPECT_EQ(stream.reads, 1);
    EXPECT_EQ(registry.counts().attached, 1U);
    session->on_gone();
    EXPECT_EQ(registry.counts().attached, 0U);
}

TEST_F(AttachSessionTest, GrantThatWaitsForAWriteIsReplacedByANewerOneOfItsDataset) {
    session->on_message(hello());
    session->send(grant(1));
    session->send(grant(2));
    EXPECT_EQ(stream.written.size(), 1U);
    session->on_written();
    ASSERT_EQ(stream.written.size(), 2U);
    ASSERT_EQ(stream.written[1].grants_size(), 1);
    EXPECT_EQ(stream.written[1].grants(0).resident_bytes(), 2U);
    session->on_written();
    EXPECT_EQ(stream.written.size(), 2U);
}

TEST_F(AttachSessionTest, LaterGrantDoesNotReplaceQueuedPins) {
    session->on_message(hello());
    session->send({{}, {}, {RevisionPin{"d1", domain::RevisionId{0xaa}}}});
    session->send(grant(1));
    session->on_written();
    ASSERT_EQ(stream.written.size(), 2U);
    EXPECT_EQ(stream.written[1].pins_size(), 1);
    EXPECT_EQ(stream.written[1].grants_size(), 1);
}

TEST_F(AttachSessionTest, ReadsNoMoreThanReportsPerStepUntilTheNextStep) {
    session->on_message(hello());
    session->on_message(report(1));
    session->on_message(report(2));
    EXPECT_EQ(stream.reads, 2);
    session->step(clock.now());
    EXPECT_EQ(stream.reads, 3);
}

TEST_F(AttachSessionTest, EndsAStreamWithoutAHello) {
    clock.advance(seconds{11});
    session->step(clock.now());
    ASSERT_EQ(stream.closed.size(), 1U);
    EXPECT_EQ(stream.closed[0].error().code, ErrorCode::kDeadlineExceeded);
}

TEST_F(AttachSessionTest, EndsAStreamThatBreaksTheProtocol) {
    session->on_message(report(1));
    session->on_message(std::nullopt);
    ASSERT_EQ(stream.closed.size(), 2U);
    EXPECT_EQ(stream.closed[0].error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(stream.closed[1].error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(stream.reads, 0);
}

TEST_F(AttachSessionTest, EndsTheOlderStreamOfAPod) {
    session->on_message(hello());
    FakeStream newer_stream;
    const auto newer = std::make_shared<AttachSession>(settings, newer_stream);
    newer->begin({"ml", "default", "a", "node-1"}, newer);
    newer->on_message(hello());
    ASSERT_EQ(stream.closed.size(), 1U);
    EXPECT_EQ(stream.closed[0].error().code, ErrorCode::kConflict);
    session->on_gone();
    EXPECT_EQ(registry.counts().attached, 1U);
    ASSERT_EQ(registry.all().size(), 1U);
    EXPECT_TRUE(registry.all()[0].attached);
}

TEST_F(AttachSessionTest, FirstMessageOffersPeerCertificates) {
    session->on_message(hello());
    EXPECT_FALSE(stream.written.at(0).signs_peers()) << "an operator without a CA";
    settings.signs_peers = true;
    const auto signing = std::make_shared<AttachSession>(settings, stream);
    signing->begin({"ml", "default", "a", "node-1"}, signing);
    signing->on_message(hello());
    signing->send(grant(1));
    signing->on_written();
    ASSERT_EQ(stream.written.size(), 3U);
    EXPECT_TRUE(stream.written[1].signs_peers());
    EXPECT_FALSE(stream.written[2].signs_peers());
}

TEST_F(AttachSessionTest, TakesPeerRequestsAndIgnoresTooMany) {
    session->on_message(hello());
    const v1::SidecarMessage request = encode(PeerRequest{"request"});
    session->on_message(request);
    session->on_message(request);
    EXPECT_EQ(registry.waiting_peer_requests().size(), 1U);
    EXPECT_TRUE(stream.closed.empty());
    const auto early = std::make_shared<AttachSession>(settings, stream);
    early->begin({"ml", "default", "b", "node-1"}, early);
    early->on_message(request);
    EXPECT_EQ(stream.closed.size(), 1U) << "before the hello";
}

TEST_F(AttachSessionTest, KeepsTheNewestGroupOfEachDatasetDuringAWrite) {
    session->on_message(hello());
    session->send({{}, {}, {}, {{"d1", 1, {}}, {"d2", 1, {}}}});
    session->send({{}, {}, {}, {{"d1", 2, {}}}});
    session->send({{}, {}, {}, {}, PeerCertificate{"chain", "trust", 60}});
    session->send(grant(1));
    session->on_written();
    ASSERT_EQ(stream.written.size(), 2U);
    const Orders sent = decode(stream.written[1]);
    EXPECT_EQ(sent.peers, (std::vector<PeerGroup>{{"d2", 1, {}}, {"d1", 2, {}}}));
    EXPECT_EQ(sent.peer_certificate->chain, "chain");
    EXPECT_EQ(sent.grants.size(), 1U);
}

}  // namespace
}  // namespace stoker::control
