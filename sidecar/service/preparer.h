#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "common/runtime/event_loop.h"
#include "sidecar/core/stall_detector.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Runs prepare_dataset() for a leader on a worker of its own, and again with back-off until it
// succeeds. Use it on the loop's thread; the destructor stops the work, even in the middle of a
// listing.
class Preparer {
public:
    struct Callbacks {
        std::function<void(Preparation)> ready;
        std::function<void()> failed;  // cause: error(); it will be retried
    };

    // Starts at once. `keep_revision`: clients use the existing manifest.
    Preparer(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        bool keep_revision,
        Callbacks callbacks);
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;
    ~Preparer();

    // Lists the origin again, even if our own attempt has a listing.
    void list_again();

    // Stops the work and waits for its end. No callback follows.
    void stop();

    [[nodiscard]] std::uint64_t objects_listed() const { return *objects_listed_; }

    // It failed and waits for its retry.
    [[nodiscard]] bool has_failed() const { return failed_; }

    // The last failure, or that the origin sends nothing during the listing.
    [[nodiscard]] const Error& error() const { return error_; }

    // Call it every second, to tell an origin that never answers from a long listing.
    void look();

private:
    void start();
    void on_prepared(Result<Preparation> prepared);

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    Callbacks callbacks_;
    PreparationOptions options_;
    std::shared_ptr<std::atomic<std::uint64_t>> objects_listed_;
    bool is_running_ = false;
    bool stopped_ = false;
    bool failed_ = false;
    Error error_;
    Duration retry_delay_;
    StallDetector stall_;
    LoopTimer timer_;
    LoopTasks tasks_;
    std::stop_source stop_;
    std::unique_ptr<Workers> worker_;  // last: it uses the members above
};

}  // namespace stoker::sidecar
