#include "sidecar/service/party_turns.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

class PartyTurnsTest : public testing::Test {
protected:
    void run(Party party, char name) {
        turns.run(party, [this, name] { begun += name; });
    }

    PartyTurns turns;
    std::string begun;
};

TEST_F(PartyTurnsTest, RunsOnePieceOfAGuestsWorkAtATime) {
    run(Party{1}, 'a');
    run(Party{1}, 'b');
    run(Party{1}, 'c');
    EXPECT_EQ(begun, "a");
    turns.end(Party{1});
    EXPECT_EQ(begun, "ab");
    turns.end(Party{1});
    turns.end(Party{1});
    run(Party{1}, 'd');
    EXPECT_EQ(begun, "abcd");
}

TEST_F(PartyTurnsTest, GuestsDoNotWaitForEachOther) {
    run(Party{1}, 'a');
    run(Party{2}, 'b');
    EXPECT_EQ(begun, "ab");
}

TEST_F(PartyTurnsTest, OwnPartysWorkNeverWaits) {
    run(kOwnParty, 'a');
    run(kOwnParty, 'b');
    turns.end(kOwnParty);
    EXPECT_EQ(begun, "ab");
}

}  // namespace
}  // namespace stoker::sidecar
