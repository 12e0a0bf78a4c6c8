#include "sidecar/core/demand_book.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr ConnectionId kAnna{1};
constexpr ConnectionId kBert{2};

struct DemandBookTest : testing::Test {
    DemandBookTest() {
        book.connect(kAnna);
        book.connect(kBert);
    }

    DemandBook book;
};

TEST_F(DemandBookTest, AnswersARequestWhenItsLastSampleIsResolved) {
    const auto ticket = book.open(kAnna, 77, 2);
    book.settle(5, {ticket, 0}, FetchOutcome::kReady, {});
    book.wait(6, {ticket, 1});
    EXPECT_TRUE(book.take_replies().empty());
    EXPECT_EQ(book.settle_all(6, FetchOutcome::kReadAtOrigin), 1U);
    const auto replies = book.take_replies();
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].connection, kAnna);
    EXPECT_EQ(replies[0].request_id, 77U);
    EXPECT_EQ(
        replies[0].outcomes, (std::vector{FetchOutcome::kReady, FetchOutcome::kReadAtOrigin}));
}

TEST_F(DemandBookTest, ResolvesAllRequestsThatWaitForASample) {
    book.wait(9, {book.open(kAnna, 1, 1), 0});
    book.wait(9, {book.open(kBert, 1, 1), 0});
    EXPECT_EQ(book.settle_all(9, FetchOutcome::kReady), 2U);
    EXPECT_EQ(book.take_replies().size(), 2U);
    EXPECT_TRUE(book.parties_waiting(9).empty());
}

TEST_F(DemandBookTest, ResolvesOnlyTheRequestsOfOneNamespace) {
    constexpr ConnectionId kGuest{3};
    book.connect(kGuest, Party{1});
    book.wait(9, {book.open(kAnna, 1, 1), 0});
    book.wait(9, {book.open(kGuest, 1, 1), 0});
    book.wait(9, {book.open(kBert, 1, 1), 0});
    EXPECT_EQ(book.settle_party(9, kOwnParty, FetchOutcome::kReadAtOrigin), 2U);
    EXPECT_EQ(book.take_replies().size(), 2U);
    EXPECT_EQ(book.parties_waiting(9), std::vector{Party{1}});
    EXPECT_EQ(book.settle_party(9, Party{1}, FetchOutcome::kReadAtOrigin), 1U);
    EXPECT_TRUE(book.parties_waiting(9).empty());
}

TEST_F(DemandBookTest, KeepsTheMessageOfTheFirstOriginError) {
    const auto ticket = book.open(kAnna, 1, 2);
    book.settle(1, {ticket, 0}, FetchOutcome::kOriginError, "gone: a.png");
    book.settle(2, {ticket, 1}, FetchOutcome::kOriginError, "gone: b.png");
    EXPECT_EQ(book.take_replies().at(0).message, "gone: a.png");
}

TEST_F(DemandBookTest, HoldsReadySamplesAfterTheReply) {
    const auto ticket = book.open(kAnna, 1, 3);
    book.settle(8, {ticket, 0}, FetchOutcome::kReady, {});
    EXPECT_TRUE(book.take_ready(kAnna).held.empty());
    book.settle(3, {ticket, 1}, FetchOutcome::kReady, {});
    book.settle(4, {ticket, 2}, FetchOutcome::kReadAtOrigin, {});
    EXPECT_EQ(book.take_ready(kAnna).held, (std::vector<SampleIndex>{3, 8}));
    EXPECT_TRUE(book.take_ready(kAnna).held.empty());
}

TEST_F(DemandBookTest, ReleasesOneHoldAtATime) {
    const auto ticket = book.open(kAnna, 1, 2);
    book.settle(8, {ticket, 0}, FetchOutcome::kReady, {});
    book.settle(8, {ticket, 1}, FetchOutcome::kReady, {});
    EXPECT_TRUE(book.release(kAnna, 8));
    EXPECT_TRUE(book.release(kAnna, 8));
    EXPECT_FALSE(book.release(kAnna, 8));
    EXPECT_FALSE(book.release(kBert, 8));
}

TEST_F(DemandBookTest, SampleThatIsLetGoStaysReady) {
    book.settle(5, {book.open(kAnna, 1, 1), 0}, FetchOutcome::kReady, {});
    const auto ticket = book.open(kBert, 1, 2);
    book.settle(5, {ticket, 0}, FetchOutcome::kReady, {});
    EXPECT_EQ(book.let_go(5), 2U);
    book.settle(6, {ticket, 1}, FetchOutcome::kReady, {});
    for (const ConnectionId connection : {kAnna, kBert}) {
        EXPECT_FALSE(book.release(connection, 5));
        EXPECT_EQ(book.take_ready(connection).seen, std::vector<SampleIndex>{5});
    }
}

TEST_F(DemandBookTest, PartyHoldsSamplesOfAnsweredAndOpenRequests) {
    book.settle(7, {book.open(kAnna, 1, 1), 0}, FetchOutcome::kReady, {});
    const auto ticket = book.open(kBert, 1, 3);
    book.settle(7, {ticket, 0}, FetchOutcome::kReady, {});
    book.settle(2, {ticket, 1}, FetchOutcome::kReady, {});
    book.connect(ConnectionId{90}, Party{1});
    book.settle(5, {book.open(ConnectionId{90}, 1, 1), 0}, FetchOutcome::kReady, {});
    EXPECT_EQ(book.held_by(kOwnParty), (std::vector<SampleIndex>{2, 7}));
}

TEST_F(DemandBookTest, DisconnectFreesHoldsAndRequests) {
    const auto answered = book.open(kAnna, 1, 1);
    book.settle(1, {answered, 0}, FetchOutcome::kReady, {});
    const auto pending = book.open(kAnna, 2, 3);
    book.settle(2, {pending, 0}, FetchOutcome::kReady, {});
    book.wait(3, {pending, 1});
    book.wait(4, {pending, 2});
    book.wait(4, {book.open(kBert, 1, 1), 0});

    const auto left = book.disconnect(kAnna);
    EXPECT_EQ(left.held, (std::vector<SampleIndex>{1, 2}));
    EXPECT_EQ(left.abandoned, (std::vector<SampleIndex>{3}));
    EXPECT_EQ(book.parties_waiting(4).size(), 1U);
    EXPECT_EQ(book.pending_requests(kAnna), 0U);
    EXPECT_EQ(book.pending_requests(kBert), 1U);
}

}  // namespace
}  // namespace stoker::sidecar
