#include "sidecar/attached/fetch_pool.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/node_directory.h"
#include "tests/support/temp_folder.h"

namespace stoker::attached {
namespace {

constexpr std::uint64_t kMax = 10;

TEST(FetchPool, ConcurrentRequestsFitTheMemoryLimit) {
    const test::TempFolder folder;
    const test::NodeDirectory node{folder.path(), {{"a", 1, "e"}}};
    const auto files = DatasetFiles::open(folder.path(), node.revision(), false).value();
    CachedDataset dataset{0, {}, "test", nullptr};
    const SystemClock clock;
    const std::string socket_path = "/nowhere";
    constexpr std::ptrdiff_t kRequests = 60;
    std::latch done{kRequests};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<bool> was_shared{false};
    std::atomic<bool> too_many{false};
    FetchPool pool{socket_path, clock, 4, kMax};
    for (std::ptrdiff_t at = 0; at < kRequests; ++at) {
        // Every tenth request is larger than the limit: it must run alone.
        const std::uint64_t weight = at % 10 == 9 ? 3 * kMax : 3;
        const auto on_done = [&, weight](const auto& /*answer*/) {
            const std::uint64_t now = bytes += weight;
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            was_shared = was_shared || now > weight;
            too_many = too_many || (now > kMax && now > weight);
            bytes -= weight;
            done.count_down();
        };
        pool.get(dataset, files, domain::SampleId{0}, 1, on_done, weight);
    }
    done.wait();
    EXPECT_TRUE(was_shared);
    EXPECT_FALSE(too_many);
}

}  // namespace
}  // namespace stoker::attached
