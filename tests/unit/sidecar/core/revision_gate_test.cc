#include "sidecar/core/revision_gate.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using domain::RevisionId;
using Verdict = RevisionGate::Verdict;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};
constexpr RevisionId kOurs{1};
constexpr RevisionId kTheirs{2};

TEST(RevisionGate, AllowsEveryRevisionWithoutAnOperator) {
    RevisionGate gate{false};
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kGo);
    EXPECT_EQ(gate.judge(kTheirs, true, kStart), Verdict::kGo);
}

TEST(RevisionGate, WaitsForThePin) {
    RevisionGate gate{true};
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kWait);
    EXPECT_EQ(gate.waits_until(), kStart + RevisionGate::kPatience);
    EXPECT_FALSE(gate.has_given());
    gate.pin(kOurs);
    EXPECT_EQ(gate.judge(kOurs, true, kStart + seconds{1}), Verdict::kGo);
    EXPECT_TRUE(gate.has_given());
}

TEST(RevisionGate, StopsWaitingForADeadOperator) {
    RevisionGate gate{true};
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kWait);
    EXPECT_EQ(gate.judge(kOurs, true, gate.waits_until() - seconds{1}), Verdict::kWait);
    EXPECT_EQ(gate.judge(kOurs, true, gate.waits_until()), Verdict::kGo);
    EXPECT_FALSE(gate.has_changed());
}

TEST(RevisionGate, ListsAgainOnceOnAPinMismatch) {
    RevisionGate gate{true};
    gate.pin(kTheirs);
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kListAgain);
    EXPECT_FALSE(gate.has_changed());
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kChanged);
    EXPECT_TRUE(gate.has_changed());
}

TEST(RevisionGate, AllowsAMatchingSecondListing) {
    RevisionGate gate{true};
    gate.pin(kTheirs);
    EXPECT_EQ(gate.judge(kOurs, true, kStart), Verdict::kListAgain);
    EXPECT_EQ(gate.judge(kTheirs, true, kStart), Verdict::kGo);
    EXPECT_FALSE(gate.has_changed());
}

TEST(RevisionGate, ReportsChangedIfListingAgainIsNotAllowed) {
    RevisionGate gate{true};
    gate.pin(kTheirs);
    EXPECT_EQ(gate.judge(kOurs, false, kStart), Verdict::kChanged);
}

TEST(RevisionGate, PinThatComesAfterTrainersReadReportsAChangeWithoutListingAgain) {
    RevisionGate gate{true};
    gate.judge(kOurs, true, kStart);
    ASSERT_EQ(gate.judge(kOurs, true, gate.waits_until()), Verdict::kGo);
    gate.pin(kTheirs);
    EXPECT_EQ(gate.judge(kOurs, true, gate.waits_until()), Verdict::kChanged)
        << "trainers read it: it cannot be listed again";
}

TEST(RevisionGate, KeepsTheRevisionGivenToTrainers) {
    RevisionGate gate{true};
    gate.judge(kOurs, true, kStart);
    const TimePoint late = gate.waits_until();
    ASSERT_EQ(gate.judge(kOurs, true, late), Verdict::kGo);
    EXPECT_EQ(gate.judge(kOurs, false, kStart), Verdict::kGo) << "no second wait after a take-over";
}

TEST(RevisionGate, NewerPinReplacesTheOlder) {
    RevisionGate gate{true};
    gate.pin(kTheirs);
    gate.judge(kOurs, false, kStart);
    gate.pin(kOurs);
    EXPECT_EQ(gate.judge(kOurs, false, kStart), Verdict::kGo);
    EXPECT_FALSE(gate.has_changed());
}

}  // namespace
}  // namespace stoker::sidecar
