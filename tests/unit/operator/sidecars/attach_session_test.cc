#include "operator/sidecars/attach_session.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/sidecar_client.h"

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

TEST_F(AttachSessionTest, KeepsOneGrantPerDatasetDuringAWrite) {
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

TEST_F(AttachSessionTest, KeepsWaitingPinsBesideALaterGrant) {
    session->on_message(hello());
    session->send({{}, {}, {RevisionPin{"d1", domain::RevisionId{0xaa}}}});
    session->send(grant(1));
    session->on_written();
    ASSERT_EQ(stream.written.size(), 2U);
    EXPECT_EQ(stream.written[1].pins_size(), 1);
    EXPECT_EQ(stream.written[1].grants_size(), 1);
}

TEST_F(AttachSessionTest, ReadsNoMoreThanItsBudgetUntilTheNextStep) {
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

}  // namespace
}  // namespace stoker::control
