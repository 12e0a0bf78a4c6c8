// The real program between a fake operator that grants a rate and an S3 server that counts bytes.
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/support/fake_operator.h"
#include "tests/support/fake_s3.h"
#include "tests/support/sample_client.h"
#include "tests/support/sidecar_process.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {
namespace {

constexpr std::uint64_t kObjects = 500;
constexpr std::uint64_t kObjectBytes = 2000;
constexpr std::uint64_t kTotalBytes = kObjects * kObjectBytes;

class SidecarRate : public ::testing::Test {
protected:
    SidecarRate() {
        for (std::uint64_t id = 0; id < kObjects; ++id) {
            s3.put("mnist", fmt::format("train/{:04}", id), fmt::format("{:0>2000}", id));
        }
        std::ofstream{folder.path() + "/ca.pem"} << control.ca();
        std::ofstream{folder.path() + "/token"} << "a.token\n";
    }

    // Runs once the operator has heard that this sidecar leads and enforces the grant.
    void run(std::uint64_t bytes_per_second) {
        control.grant("train", kTotalBytes, bytes_per_second);
        const std::string path = folder.path() + "/sidecar.yaml";
        std::ofstream{path} << fmt::format(
            "socket: {0}/s.sock\n"
            "control: {{endpoint: '{1}', caFile: {0}/ca.pem, tokenFile: {0}/token}}\n"
            "datasets:\n"
            "- name: train\n"
            "  origin: {{uri: 's3://mnist/train', endpoint: '{2}'}}\n"
            "  directory: {0}/node\n"
            "  stepAsideWindow: 0s\n"
            "  reservedFree: 0\n",
            folder.path(),
            control.endpoint(),
            s3.endpoint());
        sidecar =
            std::make_unique<SidecarProcess>(STOKER_SIDECAR_BINARY, path, folder.path() + "/log");
        ASSERT_TRUE(control.wait_report([](const auto& report) {
            return report.datasets_size() == 1 &&
                   report.datasets(0).granted_bytes() == kTotalBytes &&
                   report.datasets(0).manifest_state() == stoker::control::v1::MANIFEST_STATE_READY;
        })) << "no report of a listed dataset with the grant";
    }

    [[nodiscard]] SampleClient connect(std::uint64_t stream) const {
        SampleClient client{folder.path() + "/s.sock"};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    static std::vector<std::uint64_t> all() {
        std::vector<std::uint64_t> ids(kObjects);
        std::iota(ids.begin(), ids.end(), 0U);
        return ids;
    }

    static void expect_sample(SampleClient& client, std::uint64_t id) {
        const auto bytes = client.get(id);
        ASSERT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
        const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        ASSERT_EQ(text, fmt::format("{:0>2000}", id));
    }

    [[nodiscard]] std::uint64_t origin_bytes() {
        const auto requests = s3.requests();
        return std::accumulate(
            requests.begin(), requests.end(), std::uint64_t{0}, [](auto sum, const auto& request) {
                return sum + (request.operation == "get" ? request.body_bytes : 0);
            });
    }

    TempFolder folder;
    FakeS3 s3;
    stoker::testing::FakeOperator control;
    std::unique_ptr<SidecarProcess> sidecar;
};

// What was saved up, what may be taken ahead by those who wait, and what time has given: never more
// (sidecar/core/byte_rate.h). Holds on a machine of any speed: a slow one only takes less.
TEST_F(SidecarRate, TheOriginGivesNoMoreThanTheGrantedRateAllowsAndTheEpochEnds) {
    constexpr std::uint64_t kRate = kTotalBytes / 4;
    const SystemClock clock;
    ASSERT_NO_FATAL_FAILURE(run(kRate));
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

// Two trainers, neither of which has a plan: everything is demanded, and yet the rate holds.
TEST_F(SidecarRate, ManyWhoWaitTakeNoMoreTogether) {
    constexpr std::uint64_t kRate = kTotalBytes / 3;
    const SystemClock clock;
    ASSERT_NO_FATAL_FAILURE(run(kRate));
    const TimePoint begin = clock.now();
    const auto read = [&](std::uint64_t first) {
        SampleClient client = connect(0);
        for (std::uint64_t id = first; id < kObjects; id += 2) {
            ASSERT_NO_FATAL_FAILURE(expect_sample(client, id));
        }
    };
    std::thread other{[&] { read(1); }};
    read(0);
    other.join();
    const auto taken = static_cast<double>(origin_bytes());
    const std::chrono::duration<double> passed = clock.now() - begin;
    EXPECT_LE(taken, (2 + passed.count()) * kRate + kObjectBytes);
    EXPECT_EQ(origin_bytes(), kTotalBytes);
}

// At the first rate the epoch would take eight minutes.
TEST_F(SidecarRate, ALimitThatIsLiftedIsLiftedForThoseWhoWait) {
    ASSERT_NO_FATAL_FAILURE(run(kObjectBytes));
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
