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
    // Time limit of the whole stop, including the release of the lease; shorter than a pod's grace
    // period (30 s), so that SIGKILL does not interrupt it.
    Duration stop_limit = std::chrono::seconds{20};
};

// Starts and stops an operator's parts in controller-runtime's order:
//   start   services (probes, metrics); caches, until they have synced; the election; workers, once
//           we lead
//   stop    workers, after their current work; caches; services; release of the lease; the events'
//           writer
// Probes start first: otherwise a slow API server gets us killed. The lease is released last:
// otherwise two replicas lead.
//
// All added parts must outlive it. Call add_* before run(); call run() once.
class Supervisor {
public:
    using Loop = std::function<void(const std::stop_token& stop)>;
    // Starts a named thread; the default is common/runtime's start_thread.
    using StartThread =
        std::function<std::jthread(std::string name, std::function<void(std::stop_token)> body)>;

    struct Service {
        std::string name;
        std::function<Status()> start;
        std::function<void()> stop;
    };

    // The reason of the end, for the exit code.
    enum class End : std::uint8_t { kStopped, kServiceFailed, kCachesNotSynced, kLeadershipLost };

    Supervisor(StartThread start_thread, const Clock& clock, SupervisorOptions options = {});

    void add_service(Service service);
    void add_cache(std::string name, Loop run, std::function<bool()> has_synced);
    // Runs `run` on `threads` threads once we lead.
    void add_worker(std::string name, Loop run, std::size_t threads);
    // Called before a worker's threads stop: it must finish current work and accept nothing new.
    void add_drain(std::function<void(TimePoint until)> drain);
    void set_event_writer(Loop run);
    // Without an elector, the workers start once the caches have synced. `on_lost` is called at
    // once, on the elector's thread, when leadership is lost. A program should flush its log and
    // exit there (std::_Exit): another leader may work already, and needs no clean-up of this one.
    void set_elector(LeaderElector& elector, std::function<void()> on_lost);

    // Blocks until `stop` is requested or a part has failed for good.
    End run(const std::stop_token& stop);

    // True once every cache has synced, for /readyz. Thread-safe.
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
    Threads worker_threads_;
    Threads election_threads_;
};

}  // namespace stoker::control
