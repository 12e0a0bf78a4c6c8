#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/scale/cluster.h"
#include "common/base/clock.h"

namespace stoker::bench {

// Sidecars of `jobs` as the operator sees them: each has its own TLS connection with one Attach
// stream, sends a report at each interval, and dials again when its stream ends, as real ones do.
// Thread-safe.
class SidecarFleet {
public:
    struct Options {
        std::string ca;                                          // PEM
        std::function<std::string(const PlacedJob& job)> token;  // called once for each job
        // The operator's address; "": not known yet. Called for each dial.
        std::function<std::string()> address;
        Duration report_interval = std::chrono::seconds{2};
        std::size_t dials_per_second = 1000;
    };

    SidecarFleet(const std::vector<PlacedJob>& jobs, Options options);
    ~SidecarFleet();
    SidecarFleet(const SidecarFleet&) = delete;
    SidecarFleet& operator=(const SidecarFleet&) = delete;

    // Streams that have heard from the operator at their present address.
    [[nodiscard]] std::size_t attached() const;
    // Attached streams whose sidecar has a grant.
    [[nodiscard]] std::size_t granted() const;

    [[nodiscard]] std::uint64_t reports() const { return reports_; }

private:
    class Sidecar;

    void run(const std::stop_token& stop);

    Options options_;
    std::atomic<std::uint64_t> reports_{0};
    std::vector<std::unique_ptr<Sidecar>> sidecars_;
    std::jthread thread_;
};

}  // namespace stoker::bench
