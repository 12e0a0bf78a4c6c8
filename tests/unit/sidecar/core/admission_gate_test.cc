#include "sidecar/core/admission_gate.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};

TEST(AdmissionGate, LetsEverythingPassWhileNothingFails) {
    AdmissionGate gate;
    EXPECT_TRUE(gate.allows(kStart));
    gate.on_start();
    EXPECT_TRUE(gate.allows(kStart));
    EXPECT_EQ(gate.reopens_at(), std::nullopt);
}

TEST(AdmissionGate, IsShutAfterAFailureAndThenLetsOneProbePass) {
    AdmissionGate gate{{seconds{1}, seconds{8}}};
    gate.on_failure(kStart);
    EXPECT_FALSE(gate.allows(kStart));
    EXPECT_EQ(gate.reopens_at(), kStart + seconds{1});
    EXPECT_TRUE(gate.allows(kStart + seconds{1}));
    gate.on_start();
    EXPECT_FALSE(gate.allows(kStart + seconds{1}));
    EXPECT_EQ(gate.reopens_at(), std::nullopt);
}

TEST(AdmissionGate, DoublesTheWaitWithEachFailedProbeUpToTheLimit) {
    AdmissionGate gate{{seconds{1}, seconds{3}}};
    TimePoint now = kStart;
    gate.on_failure(now);
    for (const int wait : {2, 3, 3}) {
        now = *gate.reopens_at();
        gate.on_start();
        gate.on_failure(now);
        EXPECT_EQ(gate.reopens_at(), now + seconds{wait});
    }
}

TEST(AdmissionGate, IgnoresFailuresOfRequestsFromBeforeItShut) {
    AdmissionGate gate{{seconds{1}, seconds{8}}};
    gate.on_failure(kStart);
    gate.on_failure(kStart + seconds{5});
    EXPECT_EQ(gate.reopens_at(), kStart + seconds{1});
}

TEST(AdmissionGate, OpensWithTheFirstSuccess) {
    AdmissionGate gate;
    gate.on_failure(kStart);
    gate.on_success();
    EXPECT_TRUE(gate.is_open());
    EXPECT_TRUE(gate.allows(kStart));
}

TEST(AdmissionGate, AnAbandonedProbeFreesItsPlace) {
    AdmissionGate gate;
    gate.on_failure(kStart);
    const TimePoint later = *gate.reopens_at();
    gate.on_start();
    gate.on_abandoned();
    EXPECT_TRUE(gate.allows(later));
}

}  // namespace
}  // namespace stoker::sidecar
