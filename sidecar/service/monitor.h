#pragma once

#include <memory>
#include <string>

#include "common/base/guarded.h"
#include "common/config/address_ranges.h"
#include "common/http/http_server.h"
#include "common/metrics/metrics.h"
#include "common/runtime/loop_tasks.h"
#include "sidecar/control/control_link.h"
#include "sidecar/service/sidecar.h"
#include "sidecar/service/sidecar_metrics.h"

namespace stoker::sidecar {

// Looks at the sidecar once a second on the loop's thread, and lets other threads see what it saw:
// the HTTP server and the link to the operator. The sidecar, the loop and the registry outlive it.
class Monitor {
public:
    // `readers`: who is told more than the probes, besides who asks from the pod itself.
    Monitor(
        const Sidecar& sidecar,
        EventLoop& loop,
        metrics::Registry& registry,
        config::AddressRanges readers = {});
    Monitor(const Monitor&) = delete;
    Monitor& operator=(const Monitor&) = delete;

    // Any thread: /metrics, /healthz (the loop turns), /readyz (sessions are accepted; cold is
    // ready; a guest without a key is ready once the owner's leader has answered), /status (JSON).
    // Strangers get the status codes of the probes without words, and 403 else: what a job reads is
    // no business of other tenants.
    [[nodiscard]] http::ServerResponse answer(const http::ServerRequest& request) const;

    // The report of the last look(). Any thread.
    [[nodiscard]] LinkReport report() const;

    // Looks once more; on the loop's thread, or when the loop has ended. Otherwise it looks by
    // itself every second.
    void look();

private:
    struct Seen {
        std::string status_json;
        LinkReport report;
        std::string troubles;
        bool ready = false;
        TimePoint at{};
    };

    void look_again();

    const Sidecar& sidecar_;
    EventLoop& loop_;
    const metrics::Registry& registry_;
    const config::AddressRanges readers_;
    SidecarMetrics metrics_;
    LoopTimer timer_;
    mutable Guarded<Seen> seen_;
};

// The text of /status.
std::string status_json(const Sidecar& sidecar);

// The report to the operator.
LinkReport link_report(const Sidecar& sidecar);

}  // namespace stoker::sidecar
