#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/config/sidecar_config.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

// The sidecar's side of proto/control/v1/control.proto, with the types of wire/control.
namespace stoker::sidecar {

// The next report; while trainers wait for a pin, the following one is due soon.
struct LinkReport : control::Report {
    bool awaits_pin = false;
};

// Called on the link's threads, each by one thread at a time; must return soon.
struct LinkCallbacks {
    std::function<LinkReport()> report;
    std::function<void(const control::Grant&)> grant;
    std::function<void(const control::Probe&)> probe{};      // may be empty: no measurement
    std::function<void(const control::RevisionPin&)> pin{};  // may be empty: no pins
};

struct LinkOptions {
    Duration report_interval = std::chrono::seconds{2};
    Duration waiting_interval = std::chrono::milliseconds{500};  // while a pin is awaited
    Duration retry_min =
        std::chrono::milliseconds{200};  // grows by a quarter per attempt up to retry_max, jittered
    Duration retry_max = std::chrono::seconds{15};
    // The longest pause while no replica answers. The Service routes each attempt to any replica,
    // so a retry may reach the leader.
    Duration unreached_max = std::chrono::seconds{5};
    Duration farewell = std::chrono::seconds{2};  // time limit of the last report
    std::uint64_t seed = 0;                       // seeds the jitter
};

// Keeps one stream to the operator open: sends the sidecar's identity, reports at each interval,
// passes grants on. Logs a failure once per change and retries; nothing else in the sidecar waits
// for it. Reads the token and the CA anew for every connection. The destructor sends a last report
// with the final counts, closes the stream and joins; no callback runs after it.
class ControlLink {
public:
    // kInvalidArgument: no CA, or a file of the settings cannot be read now.
    static Result<std::unique_ptr<ControlLink>> start(
        const ControlConfig& settings,
        const JobConfig& job,
        std::vector<DatasetConfig> datasets,
        LinkCallbacks callbacks,
        LinkOptions options);

    virtual ~ControlLink() = default;

    [[nodiscard]] virtual bool is_attached() const = 0;
};

}  // namespace stoker::sidecar
