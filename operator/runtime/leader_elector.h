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

// Drives one LeaseMachine over its own transport on its own thread: a full worker pool must not
// delay a renewal. run() and release() may be called once each.
class LeaderElector {
public:
    enum class End : std::uint8_t { kStopped, kLost };

    // `transport` and `clock` must outlive it.
    LeaderElector(
        ApiTransport& transport,
        LeaderElectorOptions options,
        const Clock& clock,
        std::uint64_t seed);

    // Waits for the lease, then leads; `on_lead` is called once, on this thread, and must not
    // block. Returns kStopped on request (a leader still leads until release()), kLost after losing
    // leadership: then nothing may be written, and the process should exit at once.
    End run(const std::stop_token& stop, const std::function<void()>& on_lead);

    // Frees the lease after all work has ended, so that the next leader need not wait for its
    // expiry. Retries until `until`, at most until the lease expires; gives up at once on 401 and
    // 403 (our rights are gone). Does nothing on a replica that does not lead.
    void release(TimePoint until);

    // The fence: check it before every external write. Thread-safe.
    [[nodiscard]] bool may_write() const;

    [[nodiscard]] bool leads() const;

    // Last known holder of the lease. Thread-safe.
    [[nodiscard]] std::string holder() const;

    // For /healthz. False if we seem to lead but have not renewed for the lease's duration plus 20
    // s: the thread hangs.
    [[nodiscard]] bool is_healthy() const;

private:
    void read(const std::stop_token& stop);
    void write(const LeaseRecord& record, bool create, const std::stop_token& stop);
    [[nodiscard]] Duration call_limit() const;
    Result<ApiResponse> send(const ApiRequest& request, const std::stop_token& stop);
    // Result of a try to free the lease; nullopt: try again.
    enum class Release : std::uint8_t { kDone, kRefused };
    std::optional<Release> try_release(TimePoint until);
    static std::optional<Release> read_refusal(const Result<ApiResponse>& outcome);

    ApiTransport* transport_;
    LeaderElectorOptions options_;
    const Clock* clock_;
    mutable Guarded<LeaseMachine> machine_;
    std::optional<Json>
        seen_;  // the Lease as last read or written; only run() and release() use it
};

}  // namespace stoker::control
