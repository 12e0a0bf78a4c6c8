// The real program with samples that are larger than its memory: they come in parts.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/crc32c.h"
#include "tests/integration/sidecar_program_fixture.h"
#include "tests/support/fake_s3.h"

namespace stoker::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kLarge = 200 * kMiB + 12'345;
constexpr std::uint64_t kLargeId = 0;  // "large.bin"
constexpr std::uint64_t kSmallId = 1;  // "small.bin"

// Random-looking bytes, so that no two parts are equal.
std::string text_of(std::size_t size) {
    std::string text(size, '\0');
    std::uint64_t state = 7;
    for (char& byte : text) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        byte = static_cast<char>(state >> 56U);
    }
    return text;
}

// The private memory of a process, in bytes: without mapped files, but with shared memory.
std::uint64_t private_bytes(pid_t pid) {
    std::ifstream status{fmt::format("/proc/{}/status", pid)};
    std::uint64_t sum = 0;
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) {
            sum += std::stoull(line.substr(line.find(':') + 1)) << 10U;
        }
    }
    return sum;
}

// The most private memory that a process has while this object lives.
class PeakMemory {
public:
    explicit PeakMemory(pid_t pid)
        : watcher_([this, pid](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  peak_ = std::max(peak_.load(), private_bytes(pid));
                  std::this_thread::sleep_for(std::chrono::milliseconds{1});  // between two looks
              }
          }) {}

    [[nodiscard]] std::uint64_t bytes() const { return peak_; }

private:
    std::atomic<std::uint64_t> peak_{0};
    std::jthread watcher_;
};

class SidecarLarge : public SidecarProgramTest {
protected:
    SidecarLarge() {
        s3.make_bucket("b");
        s3.put("b", "train/large.bin", large);
        s3.put("b", "train/small.bin", "small");
    }

    std::unique_ptr<SidecarProcess> run(const std::string& name, const std::string& more = "") {
        return run_with_origin(
            fmt::format("{{uri: 's3://b/train', endpoint: '{}'}}", s3.endpoint()), name, more);
    }

    void expect_large(SampleClient& client) const {
        const auto bytes = client.get(kLargeId);
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(crc32c(*bytes), crc32c(std::as_bytes(std::span{large})));
        EXPECT_EQ(bytes->size(), large.size());
    }

    // Number of GETs of the large object, and the sum of the bytes that they requested.
    [[nodiscard]] std::pair<std::size_t, std::uint64_t> large_gets() {
        std::pair<std::size_t, std::uint64_t> sum;
        for (const FakeS3Request& request : s3.requests()) {
            if (request.operation == "get" && request.key == "train/large.bin") {
                sum = {sum.first + 1, sum.second + request.body_bytes};
            }
        }
        return sum;
    }

    [[nodiscard]] std::uint64_t segment_bytes() const {
        std::uint64_t bytes = 0;
        const std::filesystem::directory_iterator files{node_directory + "/data/segments"};
        for (const auto& entry : files) {
            std::error_code gone;  // unlinked meanwhile
            const std::uint64_t size = entry.file_size(gone);
            bytes += !gone && entry.path().extension() == ".seg" ? size : 0;
        }
        return bytes;
    }

    FakeS3 s3;
    std::string large = text_of(kLarge);
};

TEST_F(SidecarLarge, CachesASampleOfThreeTimesItsMemoryWithinTheMemory) {
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    const std::uint64_t base = private_bytes(sidecar->pid());
    {
        const PeakMemory peak{sidecar->pid()};
        expect_large(client);
        std::printf(
            "private memory: %.1f MiB before, %.1f MiB at most\n",
            static_cast<double>(base) / kMiB,
            static_cast<double>(peak.bytes()) / kMiB);
        EXPECT_LE(peak.bytes(), base + 64 * kMiB);
    }
    EXPECT_EQ(large_gets(), std::pair(std::size_t{26}, std::uint64_t{kLarge}));
    client.consumed(1, {kLargeId});
    s3.clear_requests();
    expect_large(client);
    EXPECT_EQ(large_gets().first, 0U) << "a hit";
}

TEST_F(SidecarLarge, TwoReadersAreOneFetch) {
    const auto sidecar = run("one");
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([this] {
            SampleClient client = connect("one");
            expect_large(client);
        });
    }
    readers.clear();
    EXPECT_EQ(large_gets(), std::pair(std::size_t{26}, std::uint64_t{kLarge}));
}

TEST_F(SidecarLarge, RepeatsAFailedPartAlone) {
    s3.add_fault(
        {.operation = "get", .key = "train/large.bin", .skip = 5, .times = 1, .status = 503});
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    expect_large(client);
    EXPECT_EQ(large_gets().first, 27U);
    EXPECT_LT(large_gets().second, kLarge + kMiB);
}

TEST_F(SidecarLarge, AnObjectThatChangesBetweenPartsIsAnError) {
    s3.add_fault(
        {.operation = "get",
         .key = "train/large.bin",
         .skip = 10,
         .times = -1,
         .etag = "0123456789abcdef0123456789abcdef"});
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    const auto fetched = client.fetch({kLargeId, kSmallId});
    ASSERT_TRUE(fetched.has_value()) << fetched.error().message;
    EXPECT_EQ(
        fetched->statuses,
        (std::vector{local::FetchStatus::kOriginError, local::FetchStatus::kReady}));
    EXPECT_NE(fetched->message.find("changed at the origin"), std::string::npos)
        << fetched->message;
    EXPECT_LT(large_gets().first, 20U) << "asks for no more parts";
    EXPECT_LT(segment_bytes(), kMiB) << "its space is free";
}

TEST_F(SidecarLarge, ASmallSampleDoesNotWaitForALargeOne) {
    s3.add_fault(
        {.operation = "get",
         .key = "train/large.bin",
         .times = -1,
         .bytes_per_second = 8 * kMiB});  // at least six seconds for all
    const auto sidecar = run("one");
    SampleClient slow = connect("one");
    std::jthread reader{[&] { expect_large(slow); }};
    SampleClient client = connect("one");
    ASSERT_TRUE(client.get(kSmallId).has_value());
    EXPECT_LT(large_gets().second, kLarge) << "the small one came first";
}

TEST_F(SidecarLarge, AKilledSidecarLeavesNothingOfAnUnfinishedSample) {
    s3.add_fault(
        {.operation = "get", .key = "train/large.bin", .times = -1, .bytes_per_second = 8 * kMiB});
    auto sidecar = run("one");
    SampleClient client = connect("one");
    const std::jthread reader{[&] { static_cast<void>(client.get(kLargeId)); }};
    const SystemClock clock;
    const TimePoint end = clock.now() + kPatience;
    while (large_gets().first < 6 && clock.now() < end) {           // then a part has been written
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
    }
    sidecar->kill();
    EXPECT_GE(segment_bytes(), kLarge);
    s3.clear_faults();
    sidecar = run("one", "  grant: 0\n  window: 1Mi\n");
    SampleClient second = connect("one");
    const auto read = second.read(kLargeId);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_FALSE(read->has_value());
    EXPECT_LT(segment_bytes(), kMiB);
}

TEST_F(SidecarLarge, AFollowerWithoutAccessIsRefused) {
    s3.remove("b", "train/small.bin");
    const auto leader = run("leader");
    connect("leader").close();
    s3.add_fault({.operation = "get", .key = "train/large.bin", .times = -1, .status = 403});
    const auto follower = run("follower");
    const SystemClock clock;
    const TimePoint end = clock.now() + kPatience;
    Error refusal{ErrorCode::kInternal, "not refused"};
    while (refusal.code != ErrorCode::kForbidden && clock.now() < end) {
        SampleClient client{socket_of("follower")};
        const auto welcome = client.is_connected() ? client.hello("train") : local::Welcome{};
        refusal = welcome ? refusal : welcome.error();
        ASSERT_FALSE(client.is_connected() && welcome.has_value());
    }
    EXPECT_EQ(refusal.code, ErrorCode::kForbidden) << refusal.message;
    s3.clear_faults();
    s3.clear_requests();
    connect("follower").close();
    EXPECT_EQ(large_gets(), std::pair(std::size_t{1}, std::uint64_t{64} << 10U));
}

TEST_F(SidecarLarge, PartsThatAClientWaitsForComeFirst) {
    s3.put("b", "train/z.bin", std::string(60 * kMiB, 'z'));  // listed after the other objects
    for (const char* key : {"train/large.bin", "train/z.bin"}) {
        s3.add_fault({.operation = "get", .key = key, .times = -1, .bytes_per_second = 8 * kMiB});
    }
    const auto sidecar = run("one");
    SampleClient planner = connect("one", 7);
    ASSERT_TRUE(planner.plan(1, {kLargeId}).has_value());
    const SystemClock clock;
    const TimePoint end = clock.now() + kPatience;
    while (large_gets().first < 4 && clock.now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
    }
    SampleClient client = connect("one");
    ASSERT_TRUE(client.get(2).has_value());
    EXPECT_LT(large_gets().first, 20U) << "the prefetch, of 26 parts, waits";
}

TEST_F(SidecarLarge, AFetchIsStoppedWhenItsReaderHasLeft) {
    s3.add_fault(
        {.operation = "get", .key = "train/large.bin", .times = -1, .bytes_per_second = 8 * kMiB});
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    client.send(local::Fetch{{kLargeId}});
    const SystemClock clock;
    const TimePoint end = clock.now() + kPatience;
    while (large_gets().first < 6 && clock.now() < end) {           // then a part has been written
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
    }
    client.close();
    while (segment_bytes() >= kLarge && clock.now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
    }
    EXPECT_LT(segment_bytes(), kMiB) << "its space is free";
    EXPECT_LT(large_gets().second, kLarge);
    s3.clear_faults();
    SampleClient next = connect("one");
    expect_large(next);
}

TEST_F(SidecarLarge, AStopDoesNotWaitForTheSample) {
    s3.add_fault(
        {.operation = "get", .key = "train/large.bin", .times = -1, .bytes_per_second = 2 * kMiB});
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    const std::jthread reader{[&] { static_cast<void>(client.get(kLargeId)); }};
    const SystemClock clock;
    const TimePoint end = clock.now() + kPatience;
    while (segment_bytes() < kLarge && clock.now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
    }
    EXPECT_EQ(sidecar->stop(), 0);
    EXPECT_LT(large_gets().second, kLarge);
    EXPECT_LT(segment_bytes(), kMiB);
}

}  // namespace
}  // namespace stoker::test
