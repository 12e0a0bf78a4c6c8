#pragma once

#include <string>

#include "common/base/guarded.h"
#include "common/config/address_ranges.h"
#include "common/http/http_server.h"
#include "common/metrics/metrics.h"
#include "common/metrics/process_metrics.h"
#include "common/runtime/event_loop.h"
#include "sidecar/control/control_link.h"
#include "sidecar/service/sidecar.h"
#include "sidecar/service/sidecar_metrics.h"

namespace stoker::sidecar {

// Reads the sidecar's figures once a second on the loop's thread and publishes them to other
// threads: the HTTP server and the link to the operator. The sidecar, the loop and the registry
// must outlive this object.
class Monitor {
public:
    // `readers`: addresses that, like the pod itself, get every page and its text (see answer()).
    Monitor(
        const Sidecar& sidecar,
        EventLoop& loop,
        metrics::Registry& registry,
        config::AddressRanges readers = {});
    Monitor(const Monitor&) = delete;
    Monitor& operator=(const Monitor&) = delete;

    // Answers a request, on any thread: /metrics, /healthz (the loop runs), /readyz (sessions are
    // accepted, also with a cold cache; a guest without a key is ready once the owner's leader has
    // answered), /status (JSON). Addresses not in `readers` get only the probes' status codes
    // without text, and 403 for other paths: a job's reads are private to its tenant.
    [[nodiscard]] http::ServerResponse answer(const http::ServerRequest& request) const;

    // The report of the last look(). Any thread.
    [[nodiscard]] LinkReport report() const;

    // Reads the figures now, in addition to the reading every second. Call it on the loop's thread,
    // or after the loop has ended.
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
    mutable metrics::ProcessMetrics process_;
    LoopTimer timer_;
    mutable Guarded<Seen> seen_;
};

// The text of /status.
std::string status_json(const Sidecar& sidecar);

// The report to the operator.
LinkReport link_report(const Sidecar& sidecar);

}  // namespace stoker::sidecar
