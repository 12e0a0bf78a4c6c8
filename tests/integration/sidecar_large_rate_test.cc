// The real program with a sample in parts and a granted rate.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/integration/operated_sidecar_fixture.h"

namespace stoker::test {
namespace {

class SidecarLargeRate : public OperatedSidecarTest {};

// The sample comes in parts of 128 KiB, because the memory is 1 MiB.
TEST_F(SidecarLargeRate, EachPartTakesFromTheGrantedRate) {
    constexpr std::uint64_t kRate = 500'000;
    constexpr std::uint64_t kBytes = 10 * kRate;
    s3.put("mnist", "train/large", std::string(kBytes, 'x'));  // listed after all other objects
    control.grant("train", 10 * kTotalBytes, kRate);
    run("", "  memory: 1Mi\n");
    ASSERT_TRUE(reports([](const auto& dataset) {
        return dataset.granted_bytes() == 10 * kTotalBytes &&
               dataset.manifest_state() == stoker::control::v1::MANIFEST_STATE_READY;
    })) << "no report of a listed dataset with the grant";
    const auto origin_bytes = [this] {
        std::uint64_t sum = 0;
        for (const FakeS3Request& request : s3.requests()) {
            sum += request.operation == "get" ? request.body_bytes : 0;
        }
        return sum;
    };
    const SystemClock clock;
    const TimePoint begin = clock.now();
    SampleClient client = connect(1);
    client.send(local::Fetch{{kObjects}});
    SampleClient other = connect(2);
    ASSERT_NO_FATAL_FAILURE(expect_sample(other, 0));
    EXPECT_LT(origin_bytes(), kBytes) << "a small sample does not wait for a large one";
    EXPECT_TRUE(reports([](const auto& dataset) { return dataset.resident_bytes() >= kBytes; }));
    EXPECT_LT(origin_bytes(), kBytes) << "the space of an unfinished one is reported";
    for (std::uint64_t taken = 0; taken < kBytes / 2;) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
        taken = origin_bytes();                                     // before the clock is read
        const std::chrono::duration<double> passed = clock.now() - begin;
        ASSERT_LE(static_cast<double>(taken), (2 + passed.count()) * kRate + 131072 + kObjectBytes);
        ASSERT_LT(passed.count(), 60) << "it goes on";
    }
}

}  // namespace
}  // namespace stoker::test
