#include "common/metrics/process_metrics.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "common/base/unique_fd.h"

namespace stoker::metrics {
namespace {

// The value of a series without labels.
double value_of(const std::string& exposition, const std::string& name) {
    const auto at = exposition.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? -1 : std::stod(exposition.substr(at + name.size() + 2));
}

class ProcessMetricsTest : public ::testing::Test {
protected:
    double read(const std::string& name) {
        metrics_.collect();
        return value_of(registry_.expose(), name);
    }

    Registry registry_;
    ProcessMetrics metrics_{registry_};
};

TEST_F(ProcessMetricsTest, CountsOpenDescriptors) {
    const double before = read("process_open_fds");
    std::vector<UniqueFd> files;
    for (int i = 0; i < 3; ++i) {
        files.emplace_back(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    }
    EXPECT_EQ(read("process_open_fds"), before + 3);
    files.clear();
    EXPECT_EQ(read("process_open_fds"), before);
    EXPECT_GT(read("process_max_fds"), before);
}

TEST_F(ProcessMetricsTest, CountsThreads) {
    const double before = read("process_threads");
    const std::jthread other{[](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::this_thread::yield();
        }
    }};
    EXPECT_EQ(read("process_threads"), before + 1);
}

TEST_F(ProcessMetricsTest, AnonymousMemoryGrowsWithTouchedPages) {
    constexpr std::size_t kBytes = 32U << 20U;
    const double before = read("stoker_process_anonymous_memory_bytes");
    const std::vector<char> touched(kBytes, 'x');
    EXPECT_GT(read("stoker_process_anonymous_memory_bytes"), before + kBytes / 2.0);
    EXPECT_GE(read("process_resident_memory_bytes"), read("stoker_process_anonymous_memory_bytes"));
    EXPECT_GE(read("process_virtual_memory_bytes"), read("process_resident_memory_bytes"));
    EXPECT_EQ(touched.back(), 'x');
}

TEST_F(ProcessMetricsTest, ProcessorTimeOnlyGrows) {
    const double before = read("process_cpu_seconds_total");
    double sum = 0;
    while (read("process_cpu_seconds_total") == before) {
        sum += std::rand();
    }
    EXPECT_GT(read("process_cpu_seconds_total"), before) << sum;
}

TEST_F(ProcessMetricsTest, StartIsInTheLastHours) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    constexpr double kHours = 24 * 3600;
    const double started = read("process_start_time_seconds");
    EXPECT_LE(started, now.count() + 1);
    EXPECT_GT(started, now.count() - kHours);
}

}  // namespace
}  // namespace stoker::metrics
