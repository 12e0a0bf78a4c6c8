#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/config/sidecar_config.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

// The sidecar's end of proto/control/v1/control.proto, with the values of wire/control.
namespace stoker::sidecar {

// The next report. While trainers wait for a pin, the one after it is due soon.
struct LinkReport : control::Report {
    bool awaits_pin = false;
};

// They are called on the link's threads, one call of each at a time, and should return soon.
struct LinkCallbacks {
    std::function<LinkReport()> report;
    std::function<void(const control::Grant&)> grant;
    std::function<void(const control::Probe&)> probe{};      // may be empty: nothing is measured
    std::function<void(const control::RevisionPin&)> pin{};  // may be empty: nothing is pinned
};

struct LinkOptions {
    Duration report_interval = std::chrono::seconds{2};
    Duration waiting_interval = std::chrono::milliseconds{500};  // while a pin is awaited
    Duration retry_min =
        std::chrono::milliseconds{200};  // a quarter more each time, up to retry_max, with jitter
    Duration retry_max = std::chrono::seconds{15};
    // The longest pause where nobody answered: that costs nobody anything, and behind the Service
    // stands another replica, so every second try may reach the one that leads.
    Duration unreached_max = std::chrono::seconds{5};
    Duration farewell = std::chrono::seconds{2};  // the longest that the last report may take
    std::uint64_t seed = 0;                       // of the jitter
};

// Keeps one stream to the operator open for ever: says who we are, reports every interval, hands
// grants on. Whatever goes wrong is logged once per change and tried again; nothing else in the
// sidecar waits for it. The token and the CA are read anew for every connection. Destruction sends
// one last report, with all that was counted, closes the stream and joins; after it no callback
// runs.
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
