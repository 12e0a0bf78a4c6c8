#include "sidecar/core/take_overs.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

void ask(TakeOvers& takes, const std::string& node, bool had, int times = 1) {
    for (int i = 0; i < times; ++i) {
        ASSERT_TRUE(takes.may_ask());
        takes.note_asked();
        takes.note_end(node, had);
    }
}

TEST(TakeOvers, AsksInVainOnlyAsOftenAsItsCredit) {
    TakeOvers takes;
    ask(takes, "b", false, TakeOvers::kCredit);
    EXPECT_FALSE(takes.may_ask());
}

TEST(TakeOvers, SamplesInFlightCountAsAskedInVain) {
    TakeOvers takes;
    for (int i = 0; i < TakeOvers::kCredit; ++i) {
        ASSERT_TRUE(takes.may_ask());
        takes.note_asked();
    }
    EXPECT_FALSE(takes.may_ask());
    takes.note_end("b", true);
    EXPECT_TRUE(takes.may_ask());
}

TEST(TakeOvers, GoesOnAskingANodeThatHasHalfOfTheSamples) {
    TakeOvers takes;
    for (int i = 0; i < 1000; ++i) {
        ask(takes, "b", i % 2 == 0);
        ASSERT_TRUE(takes.may_ask("b"));
    }
}

TEST(TakeOvers, EarnedCreditIsBounded) {
    TakeOvers takes;
    ask(takes, "b", true, 10 * TakeOvers::kCreditMost);
    ask(takes, "c", false, TakeOvers::kCreditMost);
    EXPECT_FALSE(takes.may_ask());
    EXPECT_TRUE(takes.may_ask("b"));
}

TEST(TakeOvers, PassesOverOnlyTheNodeThatLacksSamples) {
    TakeOvers takes;
    ask(takes, "b", false, TakeOvers::kNodeCredit - 1);
    EXPECT_TRUE(takes.may_ask("b"));
    ask(takes, "b", false);
    EXPECT_FALSE(takes.may_ask("b"));
    EXPECT_TRUE(takes.may_ask("c"));
}

}  // namespace
}  // namespace stoker::sidecar
