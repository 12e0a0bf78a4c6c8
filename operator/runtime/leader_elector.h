#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/kube/lease.h"
#include "operator/kube/transport.h"

namespace stoker::control {

struct LeaderElectorOptions {
    ObjectKey lease;
    std::string identity;  // unique to this process: host name and a random id
    LeaseTiming timing{};
};

// Drives one LeaseMachine over a transport of its own, on a thread of its own: a full worker pool
// must not delay a renewal. One run() and one release() in a life.
class LeaderElector {
public:
    enum class End : std::uint8_t { kStopped, kLost };

    // `transport` and `clock` must outlive it.
    LeaderElector(
        ApiTransport& transport,
        LeaderElectorOptions options,
        const Clock& clock,
        std::uint64_t seed);

    // Candidates, then leads; `on_lead` is called once, when it leads, from this thread, and must
    // not block. Returns kStopped on request (and still leads, if it did, until release()), kLost
    // when leadership was lost: then nothing may be written any more, and the process should end at
    // once.
    End run(const std::stop_token& stop, const std::function<void()>& on_lead);

    // After all work has ended: frees the lease so that the next leader need not wait for it to run
    // out. Tries until `until`, and no longer than the lease lasts without us; gives up at once
    // when the server says no (401, 403: our rights are gone). Does nothing when we do not lead.
    void release(TimePoint until);

    // The fence: ask before every write to the world. Thread-safe.
    [[nodiscard]] bool may_write() const;

    [[nodiscard]] bool leads() const;

    // Holder of the lease as far as we know. Thread-safe.
    [[nodiscard]] std::string holder() const;

    // False when we think that we lead, but have not renewed for the lease's time and 20 s more: we
    // hang. For /healthz.
    [[nodiscard]] bool is_healthy() const;

private:
    void read(const std::stop_token& stop);
    void write(const LeaseRecord& record, bool create, const std::stop_token& stop);
    [[nodiscard]] Duration call_limit() const;
    Result<ApiResponse> send(const ApiRequest& request, const std::stop_token& stop);
    // What came of trying to free the lease; nullopt: worth another try.
    enum class Release : std::uint8_t { kDone, kRefused };
    std::optional<Release> try_release(TimePoint until);
    static std::optional<Release> read_refusal(const Result<ApiResponse>& outcome);

    ApiTransport* transport_;
    LeaderElectorOptions options_;
    const Clock* clock_;
    mutable Guarded<LeaseMachine> machine_;
    std::optional<Json>
        seen_;  // the Lease as last read or written; only run() and release() touch it
};

}  // namespace stoker::control
