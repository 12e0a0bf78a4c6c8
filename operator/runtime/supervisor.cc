#include "operator/runtime/supervisor.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "operator/kube/pause.h"

namespace stoker::control {

namespace {

constexpr Duration kLook = std::chrono::milliseconds{10};

void stop_and_join(std::vector<std::jthread>& threads) {
    for (std::jthread& thread : threads) {
        thread.request_stop();
    }
    threads.clear();  // joins
}

}  // namespace

Supervisor::Supervisor(StartThread start_thread, const Clock& clock, SupervisorOptions options)
    : start_thread_(std::move(start_thread)),
      clock_(&clock),
      options_(options) {}

void Supervisor::add_service(Service service) {
    services_.push_back(std::move(service));
}

void Supervisor::add_cache(std::string name, Loop run, std::function<bool()> has_synced) {
    caches_.push_back({std::move(name), std::move(run), 1, std::move(has_synced)});
}

void Supervisor::add_worker(std::string name, Loop run, std::size_t threads) {
    workers_.push_back({std::move(name), std::move(run), threads});
}

void Supervisor::add_drain(std::function<void(TimePoint)> drain) {
    drains_.push_back(std::move(drain));
}

void Supervisor::set_event_writer(Loop run) {
    event_writer_ = std::move(run);
}

void Supervisor::set_elector(LeaderElector& elector, std::function<void()> on_lost) {
    elector_ = &elector;
    on_lost_ = std::move(on_lost);
}

bool Supervisor::caches_synced() const {
    return std::all_of(
        caches_.begin(), caches_.end(), [](const Part& cache) { return cache.has_synced(); });
}

void Supervisor::start_all(const std::vector<Part>& parts, Threads& threads) {
    for (const Part& part : parts) {
        for (std::size_t i = 0; i < part.threads; ++i) {
            threads.push_back(start_thread_(
                part.name, [run = part.run](const std::stop_token& stop) { run(stop); }));
        }
    }
}

Status Supervisor::start_services() {
    for (const Service& service : services_) {
        if (auto started = service.start(); !started) {
            return fail(started.error().prefixed("starting " + service.name));
        }
        ++started_services_;
    }
    return {};
}

void Supervisor::stop_services() {
    while (started_services_ > 0) {
        services_[--started_services_].stop();
    }
}

bool Supervisor::wait_for_caches(const std::stop_token& stop) {
    const TimePoint until = clock_->now() + options_.cache_sync_limit;
    while (!caches_synced()) {
        const TimePoint now = clock_->now();
        if (now >= until || !pause_until(*clock_, now + kLook, stop)) {
            return stop.stop_requested();
        }
    }
    return true;
}

void Supervisor::start_election() {
    if (elector_ == nullptr) {
        leads_ = true;
        return;
    }
    election_threads_.push_back(start_thread_("election", [this](const std::stop_token& own_stop) {
        if (elector_->run(own_stop, [this] { leads_ = true; }) == LeaderElector::End::kLost) {
            lost_ = true;
            on_lost_();
        }
    }));
}

Supervisor::End Supervisor::wait_for_end(const std::stop_token& stop) {
    bool working = false;
    while (!stop.stop_requested() && !lost_) {
        if (leads_ && !working) {
            working = true;
            start_all(workers_, worker_threads_);
        }
        pause_until(*clock_, clock_->now() + kLook, stop);
    }
    return lost_ ? End::kLeadershipLost : End::kStopped;
}

Supervisor::End Supervisor::run(const std::stop_token& stop) {
    End end = End::kStopped;
    if (event_writer_) {
        start_all({{"events", event_writer_}}, event_threads_);
    }
    if (const auto started = start_services(); !started) {
        log::error("cannot start", {{"error", started.error().message}});
        end = End::kServiceFailed;
    } else {
        start_all(caches_, cache_threads_);
        if (!wait_for_caches(stop)) {
            log::error(
                "caches did not sync in time; check that the API server is reachable and the CRDs "
                "are installed");
            end = End::kCachesNotSynced;
        } else {
            start_election();
            end = wait_for_end(stop);
        }
    }
    stop_everything(clock_->now() + options_.stop_limit);
    return end;
}

void Supervisor::drain_workers(TimePoint until) {
    for (const auto& drain : drains_) {
        drain(until);
    }
    stop_and_join(worker_threads_);
}

void Supervisor::stop_everything(TimePoint until) {
    drain_workers(until);
    stop_and_join(cache_threads_);
    stop_services();
    stop_and_join(election_threads_);
    if (elector_ != nullptr && !lost_) {
        elector_->release(until);
    }
    stop_and_join(event_threads_);
}

}  // namespace stoker::control
