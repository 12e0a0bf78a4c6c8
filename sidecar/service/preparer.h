#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "common/runtime/loop_tasks.h"
#include "sidecar/core/stall_detector.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Prepares what a leader serves (prepare_dataset()) on a thread of its own, and again with back-off
// until that works. Belongs to the loop's thread; the end of it ends the thread, which may be in
// the middle of a listing.
class Preparer {
public:
    struct Callbacks {
        std::function<void(Preparation)> ready;
        std::function<void()> failed;  // why: error(); it is tried again
    };

    // Starts at once. `keep_revision`: clients are at work on the manifest that is there.
    Preparer(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        bool keep_revision,
        Callbacks callbacks);

    // The listing of our own attempt is not good enough: lists the origin in any case.
    void list_again();

    // Ends the thread. No callback comes any more.
    void stop();

    [[nodiscard]] std::uint64_t objects_listed() const { return *objects_listed_; }

    // It failed, and is not tried again yet.
    [[nodiscard]] bool has_failed() const { return failed_; }

    // The last failure, or that the origin sends nothing while it is listed.
    [[nodiscard]] const Error& error() const { return error_; }

    // Call it every second: an origin that accepts a request and never answers must not look like a
    // long listing.
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
    std::jthread thread_;  // last: it uses the rest
};

}  // namespace stoker::sidecar
