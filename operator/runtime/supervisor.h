#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/runtime/leader_elector.h"

namespace stoker::control {

struct SupervisorOptions {
    Duration cache_sync_limit = std::chrono::minutes{2};
    // For everything together, releasing the lease included; less than a pod has before SIGKILL (30
    // s), so that the end is ours.
    Duration stop_limit = std::chrono::seconds{20};
};

// The order in which an operator's parts start and stop, as controller-runtime has it:
//   start   services (probes, metrics); caches, until they have synced; loops that need no leader;
//           the election; workers, once we lead
//   stop    loops; workers, each ending what it does; caches; services; the lease is released;
//           the events' writer
// Probes come first, or a slow API server gets us killed; the lease goes last, or two lead at once.
//
// Everything that is added must outlive it. add_* before run(); run() once.
class Supervisor {
public:
    using Loop = std::function<void(const std::stop_token& stop)>;
    // Starts a thread under a name: common/runtime's start_thread.
    using StartThread =
        std::function<std::jthread(std::string name, std::function<void(std::stop_token)> body)>;

    struct Service {
        std::string name;
        std::function<Status()> start;
        std::function<void()> stop;
    };

    // How it ended, for the exit code.
    enum class End : std::uint8_t { kStopped, kServiceFailed, kCachesNotSynced, kLeadershipLost };

    Supervisor(StartThread start_thread, const Clock& clock, SupervisorOptions options = {});

    void add_service(Service service);
    void add_cache(std::string name, Loop run, std::function<bool()> has_synced);
    void add_loop(std::string name, Loop run);
    // `threads` of them run `run` once we lead.
    void add_worker(std::string name, Loop run, std::size_t threads);
    // Before a worker's threads are told to stop: end what is under way and take nothing new on.
    void add_drain(std::function<void(TimePoint until)> drain);
    void set_event_writer(Loop run);
    // Without one, the workers start as soon as the caches have synced. `on_lost` is called at
    // once, on the elector's thread, when leadership is lost: there is nothing to clean up that
    // another leader would not undo, so a program flushes its log and ends there (std::_Exit).
    void set_elector(LeaderElector& elector, std::function<void()> on_lost);

    // Blocks until `stop` is requested or something failed for good.
    End run(const std::stop_token& stop);

    // Every cache has synced: for /readyz. Thread-safe.
    [[nodiscard]] bool caches_synced() const;

private:
    struct Part {
        std::string name;
        Loop run;
        std::size_t threads = 1;
        std::function<bool()> has_synced{};
    };

    using Threads = std::vector<std::jthread>;

    void start_all(const std::vector<Part>& parts, Threads& threads);
    bool wait_for_caches(const std::stop_token& stop);
    Status start_services();
    void stop_services();
    void start_election();
    End wait_for_end(const std::stop_token& stop);
    void stop_everything(TimePoint until);
    void drain_workers(TimePoint until);

    StartThread start_thread_;
    const Clock* clock_;
    SupervisorOptions options_;
    std::vector<Service> services_;
    std::vector<Part> caches_;
    std::vector<Part> loops_;
    std::vector<Part> workers_;
    std::vector<std::function<void(TimePoint)>> drains_;
    Loop event_writer_;
    LeaderElector* elector_ = nullptr;
    std::function<void()> on_lost_;
    std::size_t started_services_ = 0;

    std::atomic<bool> leads_{false};
    std::atomic<bool> lost_{false};
    Threads event_threads_;
    Threads cache_threads_;
    Threads loop_threads_;
    Threads worker_threads_;
    Threads election_threads_;
};

}  // namespace stoker::control
