#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "sidecar/origin/origin.h"
#include "tests/support/dataset.h"

namespace stoker::test {

// An in-memory origin that serves a Dataset and fails on command. Thread-safe. `dataset` must
// outlive it.
class FakeOrigin final : public sidecar::Origin {
public:
    explicit FakeOrigin(const Dataset& dataset);
    FakeOrigin(const FakeOrigin&) = delete;
    FakeOrigin& operator=(const FakeOrigin&) = delete;
    ~FakeOrigin() override;

    [[nodiscard]] std::string describe() const override { return "fake://dataset"; }

    [[nodiscard]] bool has_key() const override { return has_key_; }

    // Simulates missing credentials.
    void take_key(bool taken) { has_key_ = !taken; }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override;

    void fetch(sidecar::OriginFetch request, std::function<void(Result<sidecar::OriginBytes>)> done)
        override;

    // Calls fetch() for each request. After share_requests() the failures of one call count as one
    // failure.
    void fetch_together(std::vector<sidecar::OriginRequest> requests) override;

    void share_requests() { shares_ = true; }

    // Every listing and fetch fails with this error until fail_with(nullopt).
    void fail_with(std::optional<Error> error);

    // Fetches of this key fail with this error.
    void fail_key(const std::string& key, const Error& error);

    // The next `times` fetches of this key return a stored checksum that does not match their
    // bytes. As in S3Origin, a fetch fails after kAttemptsMax such attempts.
    static constexpr std::uint32_t kAttemptsMax = 8;
    void damage(const std::string& key, std::uint32_t times);

    // Duration of each fetch; fetches run one after the other.
    void set_delay(Duration delay) { delay_ns_ = delay.count(); }

    // Latency of each fetch; fetches run in parallel.
    void set_latency(Duration latency) { latency_ns_ = latency.count(); }

    // Held fetches wait in order and are counted; release() lets them continue.
    void hold();
    void release();

    // The origin lists these objects instead of the dataset's.
    void list_instead(std::vector<domain::ListedObject> objects);

    [[nodiscard]] std::uint64_t listings() const { return listings_; }

    // Number of fetches requested, in all and of one sample.
    [[nodiscard]] std::uint64_t fetches() const { return fetches_; }

    [[nodiscard]] std::uint64_t fetches_of(domain::SampleId sample) const;

    void forget_counts();

private:
    struct Job {
        sidecar::OriginFetch request;
        std::function<void(Result<sidecar::OriginBytes>)> done;
        std::chrono::steady_clock::time_point due;
    };

    void run();
    Result<sidecar::OriginBytes> answer(const sidecar::OriginFetch& request);

    const Dataset& dataset_;
    std::map<std::string, std::uint64_t> ids_;
    std::atomic<bool> has_key_{true};
    std::atomic<bool> shares_{false};
    std::atomic<Duration::rep> delay_ns_{0};
    std::atomic<Duration::rep> latency_ns_{0};
    std::atomic<std::uint64_t> listings_{0};
    std::atomic<std::uint64_t> fetches_{0};
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    std::map<std::string, std::uint64_t> fetches_by_key_;
    std::map<std::string, Error> bad_keys_;
    std::map<std::string, std::uint32_t> damaged_;  // how many more fetches get a wrong checksum
    std::optional<Error> failure_;
    std::optional<std::vector<domain::ListedObject>> objects_;
    bool held_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace stoker::test
