// The real program between a fake operator that grants a rate and an S3 server that counts bytes.
#include <chrono>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/integration/operated_sidecar_fixture.h"

namespace stoker::test {
namespace {

class SidecarRate : public OperatedSidecarTest {
protected:
    // Returns once this sidecar has reported that it leads and enforces the grant.
    void run_at(std::uint64_t bytes_per_second) {
        control.grant("train", kTotalBytes, bytes_per_second);
        run();
        ASSERT_TRUE(reports([](const auto& dataset) {
            return dataset.granted_bytes() == kTotalBytes &&
                   dataset.manifest_state() == stoker::control::v1::MANIFEST_STATE_READY;
        })) << "no report of a listed dataset with the grant";
    }

    [[nodiscard]] std::uint64_t origin_bytes() {
        const auto requests = s3.requests();
        return std::accumulate(
            requests.begin(), requests.end(), std::uint64_t{0}, [](auto sum, const auto& request) {
                return sum + (request.operation == "get" ? request.body_bytes : 0);
            });
    }
};

// Upper bound of traffic: saved burst, advance for waiting requests, and rate times duration
// (sidecar/core/rate_limiter.h). Holds on a machine of any speed; a slow one only takes less.
TEST_F(SidecarRate, StaysWithinTheGrantedRateAndFinishesTheEpoch) {
    constexpr std::uint64_t kRate = kTotalBytes / 4;
    const SystemClock clock;
    ASSERT_NO_FATAL_FAILURE(run_at(kRate));
    ASSERT_EQ(origin_bytes(), 0U);
    const TimePoint begin = clock.now();
    SampleClient client = connect(1);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    for (const std::uint64_t id : all()) {
        ASSERT_NO_FATAL_FAILURE(expect_sample(client, id));
        client.consumed(1, {id});
        const auto taken = static_cast<double>(origin_bytes());  // before the clock is read
        const std::chrono::duration<double> passed = clock.now() - begin;
        ASSERT_LE(taken, (2 + passed.count()) * kRate + kObjectBytes) << "after sample " << id;
    }
    EXPECT_EQ(origin_bytes(), kTotalBytes) << "each sample once, whatever waited";
}

// At the first rate the epoch would take eight minutes.
TEST_F(SidecarRate, LiftingTheLimitReleasesWaitingFetches) {
    ASSERT_NO_FATAL_FAILURE(run_at(kObjectBytes));
    SampleClient client = connect(1);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    ASSERT_NO_FATAL_FAILURE(expect_sample(client, 0));
    control.grant("train", kTotalBytes, 0);
    for (const std::uint64_t id : all()) {
        ASSERT_NO_FATAL_FAILURE(expect_sample(client, id));
    }
}

}  // namespace
}  // namespace stoker::test
