// A sidecar is never slower than bypassing it: a slow disk sends trainers to the origin until the
// disk has recovered; a busy machine does not.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/integration/sidecar_fixture.h"
#include "tests/support/fault_device.h"

namespace stoker::test {
namespace {

using local::FetchStatus;
using std::chrono::milliseconds;

constexpr Duration kHangGuard = std::chrono::seconds{100};

class SidecarStepAside : public SidecarTest {
protected:
    SidecarStepAside() {
        config.datasets[0].grant_bytes = Bytes::zero();  // everything passes through the window
        config.datasets[0].step_aside_window = milliseconds{200};
    }

    // Fetches batch after batch until `done` returns true; returns the answers of the last batch.
    template <class Done>
    std::vector<FetchStatus> fetch_until(SampleClient& client, Done done) {
        const TimePoint end = clock.now() + kHangGuard;
        for (std::uint64_t at = 0; clock.now() < end; at = (at + 8) % 200) {
            const auto answer = client.fetch({at, at + 1, at + 2, at + 3, at + 4, at + 5});
            EXPECT_TRUE(answer.has_value());
            if (!answer || done(answer->statuses)) {
                return answer ? answer->statuses : std::vector<FetchStatus>{};
            }
        }
        ADD_FAILURE() << "it never happens";
        return {};
    }

    SystemClock clock;
};

TEST_F(SidecarStepAside, ASlowDiskSendsTrainersToTheOriginUntilItHasRecovered) {
    auto fault = std::make_unique<FaultDevice>(1);
    std::atomic<bool> is_slow{true};
    fault->set_hook([&is_slow](FaultDevice::Operation operation, const std::string& path) {
        if (is_slow && operation == FaultDevice::Operation::kWrite &&
            path.find("/segments/") != std::string::npos) {
            std::this_thread::sleep_for(milliseconds{15});  // per sample: one megabyte per second
        }
    });
    device = std::move(fault);
    start();
    SampleClient client = connect();
    fetch_until(client, [this](const auto&) { return status().aside; });
    EXPECT_FALSE(status().admitting);
    EXPECT_NE(status().error.find("stepping aside"), std::string::npos);
    const auto aside = client.fetch({1, 2, 3});
    ASSERT_TRUE(aside.has_value());
    EXPECT_EQ(aside->statuses, std::vector(3, FetchStatus::kReadAtOrigin));

    is_slow = false;
    const auto back = fetch_until(
        client, [](const auto& statuses) { return statuses.front() == FetchStatus::kReady; });
    EXPECT_EQ(back, std::vector(6, FetchStatus::kReady));
    EXPECT_TRUE(status().admitting);
    EXPECT_EQ(status().error, "");
    stop();
}

// Twice as many threads as processors keep all of them busy. We fetch each sample at most once per
// epoch, less if the end of the previous epoch is still in the window.
TEST_F(SidecarStepAside, ABusyMachineFetchesNothingTwiceAndNeverBypasses) {
    start();
    std::atomic<bool> stop_burning{false};
    std::vector<std::thread> burners;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
        burners.emplace_back([&stop_burning] {
            while (!stop_burning) {
            }
        });
    }
    SampleClient client = connect(5);
    const TimePoint end = clock.now() + std::chrono::seconds{6};
    std::uint64_t epochs = 0;
    while (clock.now() < end) {
        ++epochs;
        ASSERT_TRUE(client.plan(epochs, all()).has_value());
        read_all(client, all(), epochs);
        ASSERT_FALSE(status().aside);
    }
    stop_burning = true;
    for (std::thread& burner : burners) {
        burner.join();
    }
    EXPECT_LE(origin->fetches(), 200 * epochs);
    EXPECT_GE(origin->fetches(), 200U);
    EXPECT_EQ(status().counters.demand_bypassed_samples, 0U);
}

}  // namespace
}  // namespace stoker::test
