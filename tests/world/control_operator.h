#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/controllers/manager.h"
#include "operator/kube/rest_client.h"
#include "operator/sidecars/attach_session.h"
#include "tests/world/control_api.h"
#include "tests/world/control_stream.h"

namespace stoker::world {

// The world's time with a wall clock that jumps.
class JumpingClock final : public Clock {
public:
    explicit JumpingClock(const Clock& clock)
        : clock_(clock) {}

    [[nodiscard]] TimePoint now() const override { return clock_.now(); }

    [[nodiscard]] WallTime wall_now() const override { return clock_.wall_now() + offset_; }

    void set_offset(Duration offset) { offset_ = offset; }

private:
    const Clock& clock_;
    Duration offset_{};
};

// One process of the operator: the product's caches, controllers, registry and sessions, stepped
// on one thread. It leads from the moment its caches are filled. Its destructor is kill -9.
class ControlOperator {
public:
    static constexpr std::uint32_t kGrantSeconds = 20;

    ControlOperator(
        Schedule& schedule,
        ControlApi& api,
        const Clock& clock,
        std::string name,
        std::uint64_t seed);
    ~ControlOperator();
    ControlOperator(const ControlOperator&) = delete;
    ControlOperator& operator=(const ControlOperator&) = delete;

    // Schedules the work in the controllers' queues; call it after each step of the world.
    void poke();

    // Whether this process accepts connections: only the leader does.
    [[nodiscard]] bool listens() const { return listens_; }

    // Begins a stream for the sidecar of that pod.
    std::shared_ptr<ControlStream> accept(const control::PodIdentity& caller, StreamUser& user);

    // Lets `count` more requests pass, then sends none; the world ends the process soon.
    void die_after(std::uint64_t count) { transport_.die_after(count); }

    [[nodiscard]] bool is_dead() const { return transport_.is_dead(); }

    // Another process leads now: this process may write nothing more.
    void fence() { is_fenced_ = true; }

    [[nodiscard]] bool is_fenced() const { return is_fenced_; }

    [[nodiscard]] control::Manager& manager() { return *manager_; }

    [[nodiscard]] control::ClusterCache& cache() { return cache_; }

    [[nodiscard]] const std::string& name() const { return name_; }

    [[nodiscard]] std::vector<std::shared_ptr<ControlStream>> streams() const;

private:
    struct Session {
        std::shared_ptr<ControlStream> stream;
        std::shared_ptr<control::AttachSession> session;
    };

    struct Queue {
        control::Reconciler* reconciler = nullptr;
        std::optional<TimePoint> due;
    };

    void in(Duration delay, std::function<void()> task);
    void wait_for_caches();
    void step_sessions();
    void run(Queue& queue);

    Schedule& schedule_;
    ControlApi& api_;
    const Clock& clock_;
    std::string name_;
    ControlTransport transport_;
    bool is_fenced_ = false;
    bool listens_ = false;
    control::ClusterCache cache_;
    control::RestClient client_;
    control::EventRecorder events_;  // not running: it drops what it cannot queue
    std::unique_ptr<control::Manager> manager_;
    std::unique_ptr<control::SessionSettings> settings_;
    std::vector<Queue> queues_;
    std::vector<Session> sessions_;
    std::vector<std::shared_ptr<ControlWatch>> watches_;
    std::shared_ptr<ControlOperator*> self_;  // expires with this object
};

}  // namespace stoker::world
